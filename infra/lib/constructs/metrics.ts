/**
 * Which of the daemons' metrics (docs/metrics.md) become metrics of CloudWatch, and under which dimensions. Few: each combination of name and
 * dimensions is paid for by the month. The rest is in the log events that they come in, where CloudWatch Logs Insights finds it.
 *
 * AWS's agent turns counters into what was added since the last look, and leaves histograms out.
 */

/** Metrics of the same dimensions. */
interface Selected {
  readonly names: readonly string[];
  /** Labels of the daemon that become dimensions. */
  readonly dimensions: readonly string[];
}

const ofNodes: readonly Selected[] = [
  {
    names: [
      "tidegraph_remote_calls_total",
      "tidegraph_version",
      "tidegraph_memory_bytes",
      "tidegraph_spilled_bytes",
    ],
    dimensions: [],
  },
  { names: ["tidegraph_commits_total"], dimensions: ["outcome"] },
  { names: ["tidegraph_refused_total"], dimensions: ["what"] },
];

/** What functions around loads of dropped files write (`services/ingest/control/src/metrics.ts`), all under one dimension of theirs. */
const ofIngest = {
  names: [
    "tidegraph_loads_completed",
    "tidegraph_loads_failed",
    "tidegraph_drops_refused",
    "tidegraph_drops_stale",
    "tidegraph_records_loaded",
    "tidegraph_records_rejected",
  ],
  dimensions: ["service"],
  /** Its value. */
  service: "ingest",
} as const satisfies Selected & { readonly service: string };

export const METRICS = {
  namespace: "Tidegraph",
  /** Name of the deployment. */
  dimension: "Deployment",
  ofNodes,
  ofIngest,
  /** Values of the label `outcome`. */
  outcomes: ["committed", "conflict", "unavailable", "refused"],
  /** Values of the label `what`. */
  refusals: ["connection", "log_record", "checkpoint", "map_item"],
} as const;
