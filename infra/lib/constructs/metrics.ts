/**
 * Selects which metrics (docs/metrics.md) become CloudWatch metrics, and under which dimensions. The selection is small
 * because CloudWatch bills each combination of name and dimensions by the month. The other metrics of nodes stay in the
 * log events that carry them, where CloudWatch Logs Insights finds them.
 *
 * AWS's agent beside a node converts counters to the increase since its last scrape, and drops histograms. A worker
 * writes its own events.
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
      "tidegraph_halted_version",
      "tidegraph_largest_replica_bytes",
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

/**
 * Metrics that workers write themselves (`services/query/src/metrics/selection.rs`), all under one dimension of their own.
 */
const ofWorkers: {
  readonly series: readonly Selected[];
  /** The value of the dimension `service`. */
  readonly service: string;
  /** Seconds between two events of a worker. */
  readonly everySeconds: number;
  /** Values of the other dimensions. */
  readonly values: Readonly<Record<"class" | "outcome" | "protocol", readonly string[]>>;
} = {
  series: [
    {
      names: [
        "tidegraph_query_duration_seconds",
        "tidegraph_queries_running",
        "tidegraph_queries_waiting",
        "tidegraph_query_memory_bytes",
        "tidegraph_query_memory_limit_bytes",
        "tidegraph_query_memory_refusals_total",
        "tidegraph_authentication_failures_total",
      ],
      dimensions: ["service"],
    },
    { names: ["tidegraph_http_requests_total"], dimensions: ["service", "class"] },
    { names: ["tidegraph_queries_total"], dimensions: ["service", "outcome"] },
    { names: ["tidegraph_connections"], dimensions: ["service", "protocol"] },
  ],
  service: "worker",
  everySeconds: 60,
  values: {
    class: ["2xx", "4xx", "5xx"],
    outcome: ["answered", "failed", "refused", "unavailable"],
    protocol: ["http/1.1", "h2", "websocket", "bolt"],
  },
};

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
  ofWorkers,
  /** Values of the label `outcome`. */
  outcomes: ["committed", "conflict", "unavailable", "refused"],
  /** Values of the label `what`. */
  refusals: ["connection", "log_record", "checkpoint", "copy", "map_item"],
} as const;
