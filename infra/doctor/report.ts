/** The report as text. */
import type { Report } from "./doctor.ts";
import type { Result, Status } from "./finding.ts";

const LABELS: Readonly<Record<Status, string>> = {
  ok: "ok",
  warning: "WARNING",
  failed: "FAILED",
  unknown: "unknown",
  absent: "-",
};
const COLOURS: Partial<Record<Status, string>> = { ok: "32", warning: "33", failed: "31", unknown: "36" };
const WIDTH = 8;

/** Writes the report for people: a line for each result, and below it what to do. */
export function asText({ release, region, stacks, results, counts }: Report, colours: boolean): string {
  const longest = Math.max(...results.map(({ id }) => id.length));
  const lines = [`tidegraph-doctor ${release}: ${stacks.join(", ")} in ${region}`, ""];
  for (const result of results) lines.push(...written(result, longest, colours));
  const words = [
    counted(counts.failed, "failure", "failures"),
    counted(counts.warning, "warning", "warnings"),
    counted(counts.unknown, "could not be looked at", "could not be looked at"),
    `${counts.ok} ok`,
  ];
  lines.push("", words.join(", "));
  return `${lines.join("\n")}\n`;
}

function written({ id, status, subject, seen, wanted, remedy }: Result, longest: number, colours: boolean) {
  const label = LABELS[status].padEnd(WIDTH);
  const shown = colours && COLOURS[status] ? `\u001b[${COLOURS[status]}m${label}\u001b[0m` : label;
  const of = subject === undefined ? "" : `${subject}: `;
  const lines = [`${shown} ${id.padEnd(longest)}  ${plain(of + seen)}`];
  const below = " ".repeat(WIDTH + longest + 3);
  if (status === "ok" || status === "absent") return lines;
  if (wanted !== undefined) lines.push(`${below}wanted: ${plain(wanted)}`);
  if (remedy !== undefined) lines.push(`${below}do: ${plain(remedy)}`);
  return lines;
}

/** Removes control characters, which names and messages of others could have, and line ends. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, " ").trim();
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
