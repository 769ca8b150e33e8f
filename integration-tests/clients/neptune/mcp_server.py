"""AWS's MCP server for Neptune: as a process that an agent starts, and its connection to a database."""

import asyncio
import json
import os
import sys

from awslabs.amazon_neptune_mcp_server.neptune import NeptuneServer
from checks import Checks, arguments, port_of
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def database(tls):
    checks = Checks("AWS's Neptune MCP server, `neptune-db://`", "awslabs.amazon-neptune-mcp-server")
    # The process takes no port, its class does.
    server = checks.step(
        "connect and read the schema", lambda: NeptuneServer("neptune-db://127.0.0.1", port=port_of(tls))
    )
    patterns = [(p.left_node, p.relation, p.right_node) for p in server.schema().relationship_patterns]
    assert ("Author", "WROTE", "Book") in patterns, patterns
    assert checks.step("status", server.status) == "Available"
    query = "MATCH (b:Book) WHERE b.pages > $least RETURN count(*) AS n"
    assert checks.step("openCypher", lambda: server.query_opencypher(query, {"least": 400})) == [{"n": 3}]
    answer = checks.step("Gremlin", lambda: server.query_gremlin("g.V().hasLabel('Book').count()"))
    assert answer["data"]["@value"] == [{"@type": "g:Int64", "@value": 9}], answer
    checks.report()


async def process(plain):
    checks = Checks("AWS's Neptune MCP server, `neptune-graph://`", "awslabs.amazon-neptune-mcp-server")
    environment = {**os.environ, "NEPTUNE_ENDPOINT": f"neptune-graph://127.0.0.1:{port_of(plain)}"}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "awslabs.amazon_neptune_mcp_server.server"], env=environment
    )
    async with stdio_client(program) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def tool(name, **arguments):
            result = await session.call_tool(name, arguments)
            text = result.content[0].text
            assert not getattr(result, "is_error", getattr(result, "isError", False)), f"{name}: {text}"
            checks.works.append(f"tool `{name}`")
            return text

        assert await tool("get_graph_status") == "Available"
        schema = json.loads(await tool("get_graph_schema"))
        pattern = {"left_node": "Author", "right_node": "Book", "relation": "WROTE"}
        assert pattern in schema["relationship_patterns"], schema
        counted = await tool("run_opencypher_query", query="MATCH (b:Book) RETURN count(b) AS n")
        assert json.loads(counted) in ({"n": 9}, [{"n": 9}]), counted
    checks.report()


if __name__ == "__main__":
    plain, tls, _ = arguments()
    database(tls)
    asyncio.run(process(plain))
