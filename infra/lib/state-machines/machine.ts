/** A state machine with its role, its log and the explanations that all of them share. */
import type { Duration } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import type * as logs from "aws-cdk-lib/aws-logs";
import * as sfn from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { IGraphState } from "../constructs/graph-state.ts";
import { machineLog } from "../log-group.ts";
import { explain, explainWildcard } from "../nag.ts";

/** Settings of a machine. */
export interface MachineProps {
  readonly state: IGraphState;
  readonly comment: string;
  readonly definition: (scope: Construct) => sfn.IChainable;
  /** The function that it invokes. */
  readonly function: lambda.IFunction;
  readonly timeout: Duration;
  readonly retention: logs.RetentionDays;
  /** @default a standard machine */
  readonly isExpress?: boolean;
  /** The name of the machine. @default one that CloudFormation makes */
  readonly name?: string;
}

/** Makes a machine below `owner`; its log group is named after `id`. */
export function stateMachine(owner: Construct, id: string, props: MachineProps): sfn.StateMachine {
  const scope = new Construct(owner, id);
  const { state, comment, retention, isExpress = false } = props;
  const role = new iam.Role(scope, "Role", {
    assumedBy: new iam.ServicePrincipal("states.amazonaws.com"),
    description: `${comment}: ${state.name}`,
  });
  const logName = id.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();
  const machine = new sfn.StateMachine(scope, "StateMachine", {
    ...(props.name !== undefined && { stateMachineName: props.name }),
    comment,
    stateMachineType: isExpress ? sfn.StateMachineType.EXPRESS : sfn.StateMachineType.STANDARD,
    definitionBody: sfn.DefinitionBody.fromChainable(props.definition(scope)),
    role,
    timeout: props.timeout,
    logs: {
      destination: machineLog(owner, `${id}Logs`, state, logName, retention),
      level: sfn.LogLevel.ALL,
      includeExecutionData: true,
    },
  });
  explain(machine, "SF2", "Its steps are look-ups, changes of the map and waits; its log has each of them.");
  explainWildcard(
    role,
    "*",
    "Step Functions sets up the delivery of its log by actions that know no resources.",
  );
  explainWildcard(role, `${props.function.functionArn}:*`, "Versions of the one function that this invokes.");
  return machine;
}
