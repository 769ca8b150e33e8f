"""awswrangler: queries to data frames, data frames to a graph, and a bulk load, always over TLS."""

import os

import awswrangler as wr
import pandas as pd
from checks import Checks, arguments, port_of


def main():
    _, tls, source = arguments()
    checks = Checks("awswrangler `neptune`", "awswrangler")
    client = checks.step("connect", lambda: wr.neptune.connect("127.0.0.1", port_of(tls), iam_enabled=False))
    # It hands prepared requests to its session, which then does not read the environment.
    client._http_session.verify = os.environ["REQUESTS_CA_BUNDLE"]
    assert checks.step("status", client.status)["status"] == "healthy"
    query = "MATCH (b:Book) WHERE b.pages > 400 RETURN b.name AS name ORDER BY name"
    frame = checks.step("openCypher to a data frame", lambda: wr.neptune.execute_opencypher(client, query))
    assert list(frame["name"]) == ["A Harbour of Glass", "Glasshafen", "The Salt Road"], frame
    frame = checks.step(
        "Gremlin to a data frame",
        lambda: wr.neptune.execute_gremlin(client, "g.V().hasLabel('Book').valueMap('name').limit(2)"),
    )
    assert len(frame) == 2 and "name" in frame.columns, frame

    vertices = pd.DataFrame(
        [
            {"~id": "w-1", "~label": "Ship", "name": "Vasa", "built(single)": 1627},
            {"~id": "w-2", "~label": "Ship", "name": "Mary Rose", "built(single)": 1511},
        ]
    )
    edges = pd.DataFrame([{"~id": "w-e", "~label": "LATER_THAN", "~from": "w-1", "~to": "w-2", "years": 116}])
    checks.step("vertices of a data frame", lambda: wr.neptune.to_property_graph(client, vertices))
    checks.step("edges of a data frame", lambda: wr.neptune.to_property_graph(client, edges))
    written = wr.neptune.execute_opencypher(
        client, "MATCH (a:Ship)-[e:LATER_THAN]->(b) RETURN a.name AS a, a.built AS built, e.years AS years, b.name AS b"
    )
    assert written.to_dict("records") == [{"a": "Vasa", "built": 1627, "years": 116, "b": "Mary Rose"}], written

    role = "arn:aws:iam::000000000000:role/none"
    checks.step("bulk load from files", lambda: wr.neptune.bulk_load_from_files(client, source, role))
    nested = pd.DataFrame([{"~id": "w-3", "~label": "Ship", "size": {"length": 69}}])
    checks.step("nested data frame", lambda: wr.neptune.to_property_graph(client, wr.neptune.flatten_nested_df(nested)))
    wr.neptune.execute_opencypher(client, "MATCH (n:Ship) DETACH DELETE n")
    checks.refusal(
        "SPARQL",
        "UnsupportedOperationException",
        lambda: wr.neptune.execute_sparql(client, "SELECT * WHERE { ?s ?p ?o }"),
    )
    checks.report()


if __name__ == "__main__":
    main()
