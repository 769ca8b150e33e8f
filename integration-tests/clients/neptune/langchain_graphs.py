"""langchain-aws: the graphs of Neptune and of Neptune Analytics, and a chain that asks a graph."""

from botocore.config import Config
from checks import Checks, arguments, environment, port_of
from langchain_aws.chains import create_neptune_opencypher_qa_chain
from langchain_aws.graphs import NeptuneAnalyticsGraph, NeptuneGraph
from langchain_core.language_models import FakeListChatModel

COUNT = "MATCH (b:Book) WHERE b.pages > $least RETURN count(*) AS n"


def check_schema(schema):
    for expected in ["(:`Author`)-[:`WROTE`]->(:`Book`)", "'property': 'pages'", "'labels': 'Translator'"]:
        assert expected in schema, schema


def neptune(tls):
    checks = Checks("langchain-aws `NeptuneGraph`", "langchain-aws")
    graph = checks.step(
        "connect and read the schema",
        lambda: NeptuneGraph(host="127.0.0.1", port=port_of(tls), region_name=environment()),
    )
    check_schema(graph.get_schema)
    assert checks.step("query with parameters", lambda: graph.query(COUNT, {"least": 400})) == [{"n": 3}]
    # The model of the test writes a query, and then a sentence about its answer.
    model = FakeListChatModel(responses=["MATCH (b:Book) RETURN count(b) AS books", "There are nine books."])
    chain = create_neptune_opencypher_qa_chain(
        model, graph, allow_dangerous_requests=True, return_intermediate_steps=True
    )
    answer = checks.step("chain of question, query and answer", lambda: chain.invoke("How many books are there?"))
    assert {"context": [{"books": 9}]} in answer["intermediate_steps"], answer
    checks.refusal("query that does not parse", "MalformedQueryException", lambda: graph.query("MATCH (n RETURN n"))
    checks.report()


def analytics(plain):
    checks = Checks("langchain-aws `NeptuneAnalyticsGraph`", "langchain-aws")
    graph = checks.step(
        "connect and read the schema",
        lambda: NeptuneAnalyticsGraph(
            graph_identifier="g-0123456789",
            endpoint_url=plain,
            region_name=environment(),
            # Analytics has the graph in the host's name, which a service on this machine has not.
            config=Config(inject_host_prefix=False),
        ),
    )
    check_schema(graph.get_schema)
    assert checks.step("query with parameters", lambda: graph.query(COUNT, {"least": 400})) == [{"n": 3}]
    checks.report()


if __name__ == "__main__":
    plain, tls, _ = arguments()
    neptune(tls)
    analytics(plain)
