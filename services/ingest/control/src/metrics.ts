/** Names of metrics. Alarms and the dashboard use the same names (`infra/lib/constructs/metrics.ts`). */
export const COMPLETED = "tidegraph_loads_completed";
export const FAILED = "tidegraph_loads_failed";
export const REFUSED = "tidegraph_drops_refused";
export const RECORDS = "tidegraph_records_loaded";
export const REJECTED = "tidegraph_records_rejected";
export const STALE = "tidegraph_drops_stale";
