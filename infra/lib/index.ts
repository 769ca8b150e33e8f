/** What other apps may use. */
export { InvalidProp } from "./check.ts";
export type { LogClusterProps } from "./constructs/log-cluster.ts";
export type { NetworkProps } from "./constructs/network.ts";
export { GraphState, type GraphStateProps } from "./constructs/state.ts";
export { StateStack } from "./stacks/state-stack.ts";
