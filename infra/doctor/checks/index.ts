/** All checks, in the order of the report. docs/doctor.md lists them; a test compares the two. */
import type { Check } from "../finding.ts";
import { ACCOUNT } from "./account.ts";
import { ALARMS } from "./alarms.ts";
import { API } from "./api.ts";
import { BUCKETS } from "./buckets.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { LOG } from "./log.ts";
import { MAP } from "./map.ts";
import { NODES } from "./nodes.ts";
import { RELEASE } from "./releases.ts";
import { ROLES } from "./roles.ts";
import { SECRETS } from "./secrets.ts";
import { STACKS } from "./stacks.ts";
import { WORKERS } from "./workers.ts";

export const CHECKS: readonly Check[] = [
  ...ACCOUNT,
  ...STACKS,
  ...ROLES,
  ...ENDPOINTS,
  ...LOG,
  ...MAP,
  ...RELEASE,
  ...NODES,
  ...BUCKETS,
  ...SECRETS,
  ...WORKERS,
  ...API,
  ...ALARMS,
];

/** The first parts of their identifiers. */
export const AREAS: readonly string[] = [...new Set(CHECKS.map(({ id }) => id.split(".")[0] ?? ""))];
