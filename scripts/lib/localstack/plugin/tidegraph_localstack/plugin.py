"""The name under which LocalStack finds the executor; loaded at its start, so it imports nothing that takes time."""

from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    name = "process"

    def load(self, *_args, **_kwargs):
        from tidegraph_localstack.executor import ProcessExecutor

        return ProcessExecutor
