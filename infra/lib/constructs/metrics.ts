/**
 * Selects which of the daemons' metrics (docs/metrics.md) become CloudWatch metrics, and under which dimensions. The
 * selection is small because CloudWatch bills each combination of name and dimensions by the month. The other metrics
 * stay in the log events that carry them, where CloudWatch Logs Insights finds them.
 *
 * AWS's agent converts counters to the increase since its last scrape, and drops histograms.
 */

/** Metrics with the same dimensions. */
interface Selected {
  readonly names: readonly string[];
  /** Labels of the daemon's metrics that become dimensions. */
  readonly dimensions: readonly string[];
}

const ofNodes: readonly Selected[] = [
  {
    names: [
      "tidegraph_remote_calls_total",
      "tidegraph_version",
      "tidegraph_memory_bytes",
      "tidegraph_memory_used_ratio",
      "tidegraph_spilled_bytes",
    ],
    dimensions: [],
  },
  { names: ["tidegraph_commits_total"], dimensions: ["outcome"] },
  { names: ["tidegraph_refused_total"], dimensions: ["what"] },
];

/** Metrics of nodes with certificates. */
const ofCertificates: Selected = { names: ["tidegraph_certificate_left_seconds"], dimensions: [] };

/** Metrics of nodes that archive the log. */
const ofArchives: Selected = { names: ["tidegraph_archive_lag_seconds"], dimensions: [] };

/**
 * Metrics of the functions around loads of dropped files (`services/ingest/control/src/metrics.ts`), all under one
 * dimension of their own.
 */
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
  /** The value of that dimension. */
  service: "ingest",
} as const satisfies Selected & { readonly service: string };

export const METRICS = {
  namespace: "Tidegraph",
  /** The label that daemons of several graphs give what belongs to one. */
  graph: "graph",
  /** The metrics that have the graph as a dimension too, where there are several: others are added up. */
  byGraph: ["tidegraph_version"],
  /** The dimension that holds the name of the deployment. */
  dimension: "Deployment",
  ofNodes,
  ofCertificates,
  ofArchives,
  ofIngest,
  /** Values of the label `outcome`. */
  outcomes: ["committed", "conflict", "unavailable", "refused"],
  /** Values of the label `what`. */
  refusals: ["connection", "log_record", "checkpoint", "map_item"],
} as const;
