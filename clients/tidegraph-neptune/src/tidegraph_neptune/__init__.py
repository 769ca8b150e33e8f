"""Makes Neptune's Python clients sign for Tidegraph's API on AWS.

Clients of Neptune sign requests for the service `neptune-db` and know no path before `/openCypher`. The API of a
Tidegraph deployment is behind Amazon API Gateway, which takes signatures for `execute-api`, below a stage (`/graph`).

- `register(url)` changes boto3, awswrangler and graph-notebook in this process: what they send to the host of the API
  goes to its stage, with its signature. All other requests stay as they are.
- `attach(client, url)` changes one client.
- `gremlin_client(url)` returns a client of gremlin-python, over HTTP.

botocore makes the signatures, with the credentials that boto3 finds.
"""

from .clients import attach, gremlin_client, register
from .endpoint import Endpoint
from .signature import RequestRefused

__all__ = ["Endpoint", "RequestRefused", "attach", "gremlin_client", "register"]
__version__ = "0.1.0"
