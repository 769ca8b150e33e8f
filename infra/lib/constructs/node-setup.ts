/**
 * The user data of a storage node's machine, which runs at its first start: it writes files and turns systemd's units on,
 * which needs no network. All else is in the units (`infra/node/`): `tidegraph-install` downloads the daemon's program and
 * AWS's agent for logs and metrics, and repeats what fails; `tidegraph-prepare` and `tidegraph-node` wait for it.
 *
 * User data must never contain a secret: everyone who may describe the machine can read it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenization } from "aws-cdk-lib";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import { asFlags } from "../daemon-flags.ts";
import type { Graph, Graphs } from "./graphs.ts";
import { METRICS } from "./metrics.ts";
import { TRACES_OF_AGENT, type TracesProps, traceVariables } from "./traces.ts";

/** The port at which nodes serve each other, workers and functions. */
export const FLEET_PORT = 7600;

/** The port of a node's metrics, on its loopback interface only. */
const METRICS_PORT = 9600;

const FILES = join(import.meta.dirname, "..", "..", "node");

const PROGRAMS = ["install.sh", "prepare.sh", "leave.sh"];
const UNITS = [
  "tidegraph-install.service",
  "tidegraph-prepare.service",
  "tidegraph-node.service",
  "tidegraph-leave.service",
  "tidegraph-leave.timer",
];
const ENABLED = [
  "tidegraph-install.service",
  "tidegraph-prepare.service",
  "tidegraph-node.service",
  "tidegraph-leave.timer",
];
/** The unit that makes several graphs. */
const MAKES_GRAPHS = "tidegraph-graphs.service";
/** The packages of a machine, besides those of the image. */
const PACKAGES = ["amazon-cloudwatch-agent", "mdadm"];

/** Values that differ between deployments. */
export interface NodeSetup {
  readonly region: string;
  readonly graphs: Graphs;
  readonly tablePrefix: string;
  readonly objects: string;
  readonly brokers: string;
  readonly fleetSecretArn: string;
  /** The secret with certificates; by default none. */
  readonly certificatesArn?: string | undefined;
  readonly logReplication: number;
  readonly logInSync: number;
  /** How nodes connect to the brokers, as variables of the daemon. */
  readonly logVariables: Readonly<Record<string, string>>;
  /** Whether nodes wait until the graph is restored, instead of creating it. */
  readonly awaitsRestore: boolean;
  /** The S3 address of the program, and its SHA-256. */
  readonly program: { readonly url: string; readonly checksum: string };
  readonly logGroup: string;
  readonly metricsLogGroup: string;
  /** The value of the metrics' dimension. */
  readonly deployment: string;
  /** Settings of restores, as variables of the daemon. */
  readonly restores?: Readonly<Record<string, string>>;
  /** Where and how often the daemon archives the log, as variables of it; by default it does not. */
  readonly archives?: Readonly<Record<string, string>> | undefined;
  /** Traces of the daemon; by default none. */
  readonly traces?: TracesProps | undefined;
}

/** Returns the commands that set up a machine with Amazon Linux 2023. */
export function nodeSetup(setup: NodeSetup): ec2.UserData {
  const home = "/opt/tidegraph";
  const data = ec2.UserData.forLinux();
  const file = (path: string, content: string): string => heredoc(path, content);
  const { areSeveral } = setup.graphs;
  const own = (name: string): string => fileOf(name, areSeveral);
  data.addCommands(
    "set -euo pipefail",
    "umask 022",
    // The folder of logs stays root's: root writes in it, and would follow links that its owner makes.
    `mkdir -p ${home}/bin ${home}/etc /var/log/tidegraph`,
    "useradd --system --home-dir /var/lib/tidegraph --shell /sbin/nologin tidegraph",
    file(`${home}/etc/fleet.env`, environment(setup)),
    ...PROGRAMS.map((name) => file(`${home}/bin/${name}`, own(name))),
    ...UNITS.map((name) => file(`/etc/systemd/system/${name}`, own(name))),
    file("/etc/logrotate.d/tidegraph", own("logrotate.conf")),
    ...severalGraphs(setup, home),
    `chmod 0755 ${PROGRAMS.map((name) => `${home}/bin/${name}`).join(" ")}`,
    file(`${home}/etc/prometheus.yaml`, scraping(setup)),
    file(`${home}/etc/agent.json`, agent(setup, home)),
    "systemctl daemon-reload",
    // Does not wait for the start: the daemon restarts until it succeeds, and its log says why it fails.
    `systemctl enable --now --no-block ${[...ENABLED, ...(areSeveral ? [MAKES_GRAPHS] : [])].join(" ")}`,
  );
  return data;
}

/**
 * Returns the commands that make several graphs: a unit of its own makes them, and tries again those that cannot be made,
 * because one of them must not keep the daemon from the others. The daemon waits for each by itself.
 */
function severalGraphs({ graphs }: NodeSetup, home: string): string[] {
  if (!graphs.areSeveral) return [];
  const own = (name: string): string => fileOf(name, true);
  const list = lines(
    graphs.all.map((graph) => [graph.name, ...flagsOf(graph, graph !== graphs.first)].join(" ")),
  );
  const unit = "/etc/systemd/system/tidegraph-node.service.d";
  return [
    heredoc(`${home}/etc/graphs`, list),
    heredoc(`${home}/bin/make-graphs.sh`, own("make-graphs.sh")),
    `chmod 0755 ${home}/bin/make-graphs.sh`,
    heredoc(`/etc/systemd/system/${MAKES_GRAPHS}`, own(MAKES_GRAPHS)),
    `mkdir -p ${unit}`,
    heredoc(`${unit}/graphs.conf`, "[Service]\nExecStartPre=\n"),
  ];
}

/** Returns the flags of `tidegraph-node init` for a graph. */
function flagsOf({ partitions, shards, replication, gremlin }: Graph, sharesObjects: boolean): string[] {
  return [
    ...[
      "--partitions",
      Tokenization.stringifyNumber(partitions),
      "--shards",
      String(shards),
      "--replication",
      String(replication),
    ],
    ...(sharesObjects ? ["--share-objects"] : []),
    ...asFlags(gremlin),
  ];
}

/** The variables of the daemon, and those that units pass on as flags. */
function environment(setup: NodeSetup): string {
  const { first, areSeveral, variable, shareVariable } = setup.graphs;
  const variables = {
    AWS_REGION: setup.region,
    AWS_DEFAULT_REGION: setup.region,
    TIDEGRAPH_GRAPH: variable,
    ...(shareVariable !== undefined && { TIDEGRAPH_GRAPH_SHARE: shareVariable }),
    TIDEGRAPH_TABLE_PREFIX: setup.tablePrefix,
    TIDEGRAPH_OBJECTS: setup.objects,
    TIDEGRAPH_KAFKA_BROKERS: setup.brokers,
    ...setup.logVariables,
    ...(!areSeveral && first.gremlin),
    ...setup.restores,
    ...setup.archives,
    ...(setup.awaitsRestore && { TIDEGRAPH_AWAIT_RESTORE: "true" }),
    TIDEGRAPH_FLEET_SECRET: setup.fleetSecretArn,
    ...(setup.certificatesArn !== undefined && { TIDEGRAPH_TLS_SECRET: setup.certificatesArn }),
    ...(setup.traces && traceVariables(setup.traces)),
    FLEET_PORT,
    METRICS_PORT,
    ...(!areSeveral && {
      PARTITIONS: Tokenization.stringifyNumber(first.partitions),
      SHARDS: first.shards,
      REPLICATION: first.replication,
    }),
    LOG_REPLICATION: setup.logReplication,
    LOG_IN_SYNC: setup.logInSync,
    PROGRAM_URL: setup.program.url,
    PROGRAM_SHA256: setup.program.checksum,
    PACKAGES: `"${PACKAGES.join(" ")}"`,
  };
  return lines(Object.entries(variables).map(([name, value]) => `${name}=${value}`));
}

/** The agent's scrape settings for the daemon's metrics. The label set here becomes a dimension. */
function scraping(setup: NodeSetup): string {
  return lines([
    "global:",
    "  scrape_interval: 1m",
    "  scrape_timeout: 10s",
    "scrape_configs:",
    "  - job_name: tidegraph-node",
    "    static_configs:",
    `      - targets: ["127.0.0.1:${METRICS_PORT}"]`,
    "        labels:",
    `          ${METRICS.dimension}: ${setup.deployment}`,
  ]);
}

/** The settings of AWS's agent: it ships the daemon's log, and its metrics embedded in log events. */
function agent(setup: NodeSetup, home: string): string {
  const published = [
    ...METRICS.ofNodes,
    ...(setup.certificatesArn === undefined ? [] : [METRICS.ofCertificates]),
    ...(setup.archives === undefined ? [] : [METRICS.ofArchives]),
  ];
  const selected = published.map(({ dimensions, names }) => ({
    source_labels: ["job"],
    label_matcher: "^tidegraph-node$",
    dimensions: [[METRICS.dimension, ...dimensions]],
    metric_selectors: names.map((name) => `^${name}$`),
  }));
  if (setup.graphs.areSeveral) {
    selected.push({
      source_labels: ["job"],
      label_matcher: "^tidegraph-node$",
      dimensions: [[METRICS.dimension, METRICS.graph]],
      metric_selectors: METRICS.byGraph.map((name) => `^${name}$`),
    });
  }
  const settings = {
    agent: { region: setup.region, run_as_user: "cwagent" },
    ...(setup.traces && { traces: TRACES_OF_AGENT }),
    logs: {
      logs_collected: {
        files: {
          collect_list: [
            {
              file_path: "/var/log/tidegraph/node.log",
              log_group_name: setup.logGroup,
              log_stream_name: "{instance_id}",
            },
            {
              file_path: "/var/log/tidegraph/start.log",
              log_group_name: setup.logGroup,
              log_stream_name: "{instance_id}/start",
            },
          ],
        },
      },
      metrics_collected: {
        prometheus: {
          log_group_name: setup.metricsLogGroup,
          prometheus_config_path: `${home}/etc/prometheus.yaml`,
          emf_processor: {
            metric_namespace: METRICS.namespace,
            metric_declaration_dedup: true,
            metric_declaration: selected,
          },
        },
      },
    },
  };
  return `${JSON.stringify(settings)}\n`;
}

/** Returns a file of the folder; with several graphs, whose names take bytes, without the comments that fill its lines. */
function fileOf(name: string, isShort: boolean): string {
  const text = readFileSync(join(FILES, name), "utf8");
  return isShort ? text.replaceAll(/^\s*#(?!!).*\n/gm, "") : text;
}

function lines(all: string[]): string {
  return `${all.join("\n")}\n`;
}

/** Returns a command that writes a file verbatim. */
function heredoc(path: string, content: string): string {
  return `cat >${path} <<'END OF FILE'\n${content}END OF FILE`;
}
