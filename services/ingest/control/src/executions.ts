/** Reads executions from Step Functions. */
import {
  DescribeExecutionCommand,
  ExecutionDoesNotExist,
  GetExecutionHistoryCommand,
  type SFNClient,
} from "@aws-sdk/client-sfn";
import type { Executions, Standing } from "./stopped.ts";

/** Upper bound of the events up to the end of the first state: at most six attempts, each with a few events. */
const FIRST_EVENTS = 100;

export class StepFunctions implements Executions {
  private readonly client: SFNClient;

  constructor(client: SFNClient) {
    this.client = client;
  }

  async standing(executionArn: string): Promise<Standing | undefined> {
    try {
      const { status = "", cause } = await this.client.send(new DescribeExecutionCommand({ executionArn }));
      return { status, cause };
    } catch (error) {
      if (error instanceof ExecutionDoesNotExist) return undefined;
      throw error;
    }
  }

  async first(executionArn: string): Promise<string | undefined> {
    const ask = { executionArn, maxResults: FIRST_EVENTS, includeExecutionData: true };
    const { events = [] } = await this.client.send(new GetExecutionHistoryCommand(ask));
    return events.find(({ stateExitedEventDetails }) => stateExitedEventDetails)?.stateExitedEventDetails
      ?.output;
  }
}
