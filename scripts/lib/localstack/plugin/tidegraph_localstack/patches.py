"""Where LocalStack 4.14 differs from AWS, or would download what a test brings along. Applied once, while LocalStack starts."""

import functools
import os
import re
import threading
import uuid

from localstack.runtime import hooks

# https://docs.aws.amazon.com/apigateway/latest/developerguide/response-streaming-lambda-configure.html
STREAMING = re.compile(r":path/2021-11-15/functions/([^/]+)/response-streaming-invocations$")


@hooks.on_infra_start()
def patch_dynamodb():
    """DynamoDB Local from Maven Central (`TIDEGRAPH_DYNAMODB_CLASSPATH`) instead of a download; one database for each start, in memory."""
    from localstack.services.dynamodb import server
    from localstack.utils.run import ShellCommandThread

    def start(self):
        classpath = os.environ["TIDEGRAPH_DYNAMODB_CLASSPATH"]
        libraries = os.path.dirname(classpath)
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", f"-Djava.library.path={libraries}", "-cp", classpath]
        main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
        command = [*java, main, "-port", str(self.port), "-inMemory", "-disableTelemetry"]
        thread = ShellCommandThread(command, auto_restart=False, name="dynamodb-local")
        server.TMP_THREADS.append(thread)
        thread.start()
        return thread

    server.DynamodbServer.do_start_thread = start


@hooks.on_infra_start()
def patch_events():
    """A rule that starts a state machine with an input of its own making. AWS draws a name for the execution; LocalStack looks for one in the input, under
    `id`, and starts nothing where there is none."""
    from localstack.services.events import target

    def send_event(self, event, trace_header):
        self.service = "stepfunctions"
        self.client.start_execution(
            stateMachineArn=self.target["Arn"], name=str(uuid.uuid4()), input=target.to_json_str(event)
        )

    target.StatesTargetSender.send_event = send_event


@hooks.on_infra_start()
def patch_rest_api():
    """Answers that a function streams. API Gateway calls the function by another action then, which LocalStack refuses; here it is the usual one, and
    `runtime_api` makes the answer whole."""
    from localstack.services.apigateway.legacy.provider import ApigatewayProvider

    put = ApigatewayProvider.put_integration

    # With the marks by which LocalStack knows an operation.
    @functools.wraps(put)
    def put_either(self, context, request, **kwargs):
        found = STREAMING.search(request.get("uri") or "")
        if found and request.get("responseTransferMode") == "STREAM":
            buffered = f":path/2015-03-31/functions/{found[1]}/invocations"
            request["uri"] = STREAMING.sub(buffered, request["uri"])
        return put(self, context, request, **kwargs)

    ApigatewayProvider.put_integration = put_either


@hooks.on_infra_start()
def patch_lambda():
    """Weights of an alias that changes. LocalStack checks them against the alias's version, which it passes on only when an alias is made."""
    from localstack.services.lambda_ import api_utils
    from localstack.services.lambda_.provider_utils import get_function_version
    from localstack.services.lambda_.provider import LambdaProvider

    update, check = LambdaProvider.update_alias, LambdaProvider._create_routing_config_model
    changing = threading.local()

    @functools.wraps(update)
    def update_one(self, context, function_name, name, function_version=None, **kwargs):
        account, region = api_utils.get_account_and_region(function_name, context)
        short = api_utils.get_function_name(function_name, context)
        now = function_version or self.get_alias(context, function_name, name)["FunctionVersion"]
        changing.version = get_function_version(short, now, account, region)
        return update(self, context, function_name, name, function_version, **kwargs)

    def check_one(self, weights, function_version=None):
        return check(self, weights, function_version or changing.version)

    LambdaProvider.update_alias, LambdaProvider._create_routing_config_model = update_one, check_one


@hooks.on_infra_start()
def patch_distributed_map():
    """A Distributed Map whose tasks failed. AWS fails it, unless it says that some may fail; LocalStack counts them and goes on."""
    from localstack.aws.api.stepfunctions import HistoryEventType, MapRunFailedEventDetails
    from localstack.services.stepfunctions.asl.component.common.error_name import failure_event as failures
    from localstack.services.stepfunctions.asl.component.common.error_name.states_error_name import StatesErrorName
    from localstack.services.stepfunctions.asl.component.common.error_name.states_error_name_type import (
        StatesErrorNameType,
    )
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_map.iteration import (
        distributed_iteration_component as distributed,
    )
    from localstack.services.stepfunctions.asl.eval.event.event_detail import EventDetails

    run = distributed.DistributedIterationComponent._map_run

    def run_and_count(self, env, eval_input):
        run(self, env, eval_input)
        # Tasks of an execution that was stopped are aborted, and it stays stopped; LocalStack would take it for one that failed.
        if not env.is_running():
            return
        record = eval_input.map_run_record
        items = record.item_counter
        failed = items.failed.get() + items.timed_out.get() + items.aborted.get()
        share = record.tolerated_failure_percentage * items.total.get() / 100
        if failed <= max(record.tolerated_failure_count, share):
            return
        error = StatesErrorName(typ=StatesErrorNameType.StatesExceedToleratedFailureThreshold)
        cause = "The specified tolerated failure threshold was exceeded"
        details = MapRunFailedEventDetails(error=error.error_name, cause=cause)
        raise failures.FailureEventException(
            failures.FailureEvent(
                env=env,
                error_name=error,
                event_type=HistoryEventType.MapRunFailed,
                event_details=EventDetails(mapRunFailedEventDetails=details),
            )
        )

    distributed.DistributedIterationComponent._map_run = run_and_count


@hooks.on_infra_start()
def patch_s3():
    """Objects lie in our own temporary folder, which is removed at the end, and not in one that all LocalStacks of a machine share."""
    from localstack import config
    from localstack.services.s3 import provider

    provider.DEFAULT_S3_TMP_DIR = os.path.join(config.dirs.tmp, "s3")
