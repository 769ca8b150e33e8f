"""Child executions of a Distributed Map.

AWS runs each item in an execution of its own, with an id and a history. LocalStack 4.14 gives all items the id of the execution around them, drops their
events, and lists no executions of a Map run. Here each item has its own id (`$$.Execution.Id`) and events; `ListExecutions` with the ARN of a Map run lists
them, and `DescribeExecution` and `GetExecutionHistory` know their ARNs (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-examine-map-run.html).
"""

import datetime
import functools
import threading
import uuid
from dataclasses import dataclass, field

from localstack.runtime import hooks


def _now():
    return datetime.datetime.now(tz=datetime.UTC)


@dataclass
class _Child:
    arn: str
    map_run: str
    state_machine: str
    events: object
    status: str = "RUNNING"
    started: datetime.datetime = field(default_factory=_now)
    stopped: datetime.datetime | None = None

    def listed(self):
        listed = {
            "executionArn": self.arn,
            "mapRunArn": self.map_run,
            "stateMachineArn": self.state_machine,
            "name": self.arn.rpartition(":")[2],
            "status": self.status,
            "startDate": self.started,
        }
        return listed if self.stopped is None else listed | {"stopDate": self.stopped}

    def described(self):
        """What is listed, with the input: that of the first state."""
        entered = (event.get("stateEnteredEventDetails") for event in self.events.get_event_history())
        first = next((details for details in entered if details), None)
        return self.listed() if first is None else self.listed() | {"input": first["input"]}


_children = {}
_lock = threading.Lock()


def _of_run(map_run):
    with _lock:
        return [child for child in _children.values() if child.map_run == map_run]


def _find(arn):
    with _lock:
        return _children.get(arn)


def _begin(env, record):
    """Gives the environment of an item an id and events of its own."""
    from localstack.services.stepfunctions.asl.eval.event.event_manager import EventHistoryContext, EventManager

    run, _, _ = record.map_run_arn.rpartition(":")
    arn = f"{run.replace(':mapRun:', ':execution:')}:{uuid.uuid4()}"
    env.event_manager = EventManager()
    env.event_history_context = EventHistoryContext.of_program_start()
    context = env.states.context_object.context_object_data
    context["Execution"] = context["Execution"] | {"Id": arn, "Name": arn.rpartition(":")[2]}
    child = _Child(arn, record.map_run_arn, record.map_state_machine_arn, env.event_manager)
    with _lock:
        _children[arn] = child
    return child


@hooks.on_infra_start()
def patch_children():
    from localstack.services.stepfunctions.asl.component.state.state_execution.state_map.iteration.itemprocessor import (
        distributed_item_processor_worker as worker,
    )
    from localstack.services.stepfunctions.asl.eval.program_state import ProgramStopped
    from localstack.services.stepfunctions.provider import StepFunctionsProvider

    processor = worker.DistributedItemProcessorWorker
    run = processor._eval_job
    listing, describing = StepFunctionsProvider.list_executions, StepFunctionsProvider.describe_execution
    history = StepFunctionsProvider.get_execution_history

    def run_child(self, env, job):
        child = _begin(env, self._map_run_record)
        run(self, env, job)
        child.stopped = _now()
        if isinstance(env.program_state(), ProgramStopped):
            child.status = "ABORTED"
        else:
            # LocalStack gives an item that failed no output.
            child.status = "FAILED" if job.job_output is None else "SUCCEEDED"

    @functools.wraps(listing)
    def list_any(self, context, state_machine_arn=None, *args, map_run_arn=None, **kwargs):
        if map_run_arn is None:
            return listing(self, context, state_machine_arn, *args, **kwargs)
        return {"executions": [child.listed() for child in _of_run(map_run_arn)]}

    @functools.wraps(describing)
    def describe_any(self, context, execution_arn, *args, **kwargs):
        child = _find(execution_arn)
        if child is None:
            return describing(self, context, execution_arn, *args, **kwargs)
        return child.described()

    @functools.wraps(history)
    def history_of_any(self, context, execution_arn, *args, **kwargs):
        child = _find(execution_arn)
        if child is None:
            return history(self, context, execution_arn, *args, **kwargs)
        return {"events": child.events.get_event_history()}

    processor._eval_job = run_child
    StepFunctionsProvider.list_executions = list_any
    StepFunctionsProvider.describe_execution = describe_any
    StepFunctionsProvider.get_execution_history = history_of_any
