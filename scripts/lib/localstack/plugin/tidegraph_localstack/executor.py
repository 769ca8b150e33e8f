"""An environment of a Lambda function as a process on this machine, instead of a container.

LocalStack asks for an environment (`start`), gives it one event at a time (`invoke`) and ends it (`stop`). A process that died while it had no event is
replaced, since Lambda gives no event to an environment that is gone. The process is the function's own program,
unpacked by LocalStack, or this machine's Node.js with its code (`runtime.mjs`); it speaks with the Runtime API that `runtime_api` serves for it. There is
no isolation and no limit of memory, and a program has to be for this machine's processor, whatever the function says.

Processes stay in LocalStack's group, so that whoever ends the group ends them. What must never happen: that one gets variables of ours beside those that
Lambda and LocalStack give it, but for what their endpoint needs.
"""

import json
import os
import queue
import subprocess
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from tidegraph_localstack import runtime_api

PASSED_ON = ("PATH", "LANG", "TMPDIR")
RUNTIME = os.path.join(os.path.dirname(__file__), "runtime.mjs")
# What an environment has logged and nobody has asked for; older lines are dropped.
MOST_LINES = 10_000


def _error(kind, message):
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


class ProcessExecutor(RuntimeExecutor):
    def __init__(self, id, function_version):
        super().__init__(id=id, function_version=function_version)
        # Both are those of the process that runs.
        self.events = queue.Queue()
        self.ready = Future()
        # The request that runs, and what becomes of it.
        self.current = None
        self.lock = threading.RLock()
        self.lines = []
        self.process = None
        self.api = None
        folder = os.environ["TIDEGRAPH_FUNCTION_LOGS"]
        # Whole, whatever LocalStack makes of it: also of a function that ends before its first event.
        self.log = os.path.join(folder, f"{function_version.id.function_name}-{id[:8]}.log")

    # What LocalStack asks of an executor.

    def start(self, env_vars):
        self.api = runtime_api.serve(self)
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.environment_variables = env_vars
        self._run()

    def stop(self):
        self.events.put(None)
        self._kill()
        if self.api:
            self.api.shutdown()
            self.api.server_close()

    def _run(self):
        """Starts the process and waits until it asks for its first event."""
        env_vars = self.environment_variables
        code = str(self.function_version.config.code.get_unzipped_code_location())
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment |= {name: str(value) for name, value in env_vars.items()}
        environment |= {
            "LAMBDA_TASK_ROOT": code,
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.api.server_port}",
        }
        # LocalStack names its own endpoint to a function, which has no TLS; an object store speaks with none such unless it is told to.
        if environment.get("AWS_ENDPOINT_URL", "").startswith("http://"):
            environment["AWS_ALLOW_HTTP"] = "true"
        began = time.monotonic()
        self.process = subprocess.Popen(
            self._command(code),
            cwd=code,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        threading.Thread(target=self._read_log, args=(self.process,), daemon=True).start()
        try:
            self.ready.result(timeout=config.LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT)
        except Exception:
            self._kill()
            raise
        self._note(f"INIT_REPORT Init Duration: {(time.monotonic() - began) * 1000:.2f} ms")

    def _replace_if_gone(self):
        with self.lock:
            if self.process.poll() is None:
                return
            # Who still waits for an event on behalf of the old process gets none.
            self.events.put(None)
            self.events, self.ready, self.process = queue.Queue(), Future(), None
        self._run()

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def invoke(self, payload):
        self._replace_if_gone()
        request_id, outcome = payload["invoke-id"], Future()
        limit = self.function_version.config.timeout
        with self.lock:
            self.current = (request_id, outcome)
        if self.process.poll() is not None:
            self.fail("Runtime.ExitError", f"the function ended with {self.process.returncode}")
        began = time.time()
        self._note(f"START RequestId: {request_id} Version: {self.function_version.id.qualifier}")
        self.events.put(payload | {"deadline-ms": int((began + limit) * 1000)})
        try:
            body, failed = outcome.result(timeout=limit)
        except NotInTime:
            self._kill()
            said = f"RequestId: {request_id} Error: Task timed out after {limit:.2f} seconds"
            # LocalStack drops an environment that raises this, and answers with its payload.
            raise StatusErrorException("timeout", payload=_error("Sandbox.Timedout", said)) from None
        finally:
            with self.lock:
                self.current = None
        self._note(f"END RequestId: {request_id}")
        self._note(f"REPORT RequestId: {request_id}\tDuration: {(time.time() - began) * 1000:.2f} ms")
        with self.lock:
            lines, self.lines = self.lines, []
        return InvocationResult(request_id, body, is_error=failed, logs="\n".join(lines))

    def get_logs(self):
        with self.lock:
            return "\n".join(self.lines)

    @classmethod
    def prepare_version(cls, function_version):
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        """Nothing was prepared beside the code, which is LocalStack's."""

    # What the Runtime API tells.

    def next_event(self):
        """Waits for an event; `None` when the environment ends. Asking for the first one says that the function is ready."""
        with self.lock:
            if not self.ready.done():
                self.ready.set_result(True)
            events = self.events
        return events.get()

    def init_failed(self, body):
        with self.lock:
            if not self.ready.done():
                self.ready.set_exception(StatusErrorException("init error", payload=body))

    def answered(self, request_id, body, failed):
        with self.lock:
            if self.current and self.current[0] == request_id and not self.current[1].done():
                self.current[1].set_result((body, failed))

    def fail(self, kind, message):
        """The process is no good any more: whoever waits for it is told."""
        error = StatusErrorException(message, payload=_error(kind, message))
        with self.lock:
            if not self.ready.done():
                self.ready.set_exception(error)
            if self.current and not self.current[1].done():
                self.current[1].set_exception(error)

    # The process.

    def _command(self, code):
        runtime = self.function_version.config.runtime
        if runtime.startswith("provided"):
            return [os.path.join(code, "bootstrap")]
        if runtime.startswith("nodejs"):
            # Of whatever version there is here: the code is bundled for the oldest that the repository takes.
            return ["node", RUNTIME, self.function_version.config.handler]
        message = f"functions with the runtime {runtime} are not run here, only programs (provided) and Node.js"
        raise StatusErrorException(message, payload=_error("Runtime.Unsupported", message))

    def _note(self, line):
        with self.lock:
            self.lines.append(line)
            del self.lines[:-MOST_LINES]
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"{line}\n")

    def _read_log(self, process):
        for line in process.stdout:
            self._note(line.decode(errors="replace").rstrip("\n"))
        code = process.wait()
        with self.lock:
            # One that was replaced has nobody who waits for it.
            if self.process is process:
                self.fail("Runtime.ExitError", f"the function ended with {code}")

    def _kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
