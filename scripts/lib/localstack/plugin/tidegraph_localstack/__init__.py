"""What LocalStack 4.14 needs to run Tidegraph's templates on a machine without Docker and without the internet.

- `executor`: Lambda functions as processes of this machine (`LAMBDA_RUNTIME_EXECUTOR=process`).
- `runtime.mjs`: what runs the code of functions for Node.js.
- `runtime_api`: the Runtime API that such a process asks for its events.
- `children`: executions of the items of a Distributed Map.
- `patches`: six places in which LocalStack differs from AWS, or wants to download something.

LocalStack finds the package by its entry points (`tidegraph_localstack-1.dist-info` beside it), when this folder is on Python's path. What must never
happen: that a patch makes a template pass which AWS refuses.
"""
