/**
 * Draws state machines from their definitions (Amazon States Language) as Mermaid flowcharts. `npm run draw --workspace
 * infra` writes the drawings into `docs/rebalance.md`, `docs/upgrade.md` and `docs/ingest.md`, between comments that name the machine.
 * Tests fail if the drawings are out of date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Template } from "aws-cdk-lib/assertions";
import { example, flat, named } from "../test/support.ts";

/** A page with drawings. */
export interface Page {
  readonly path: string;
  /** Maps the name of each drawing to the prefix of the machine's logical id. */
  readonly machines: ReadonlyMap<string, string>;
}

const DOCS = join(import.meta.dirname, "..", "..", "docs");

/** The page of the machines that move replicas. */
export const REBALANCE: Page = {
  path: join(DOCS, "rebalance.md"),
  machines: new Map([
    ["detect", "ServiceRebalanceDetect"],
    ["heal", "ServiceRebalanceHeal"],
    ["scale-out", "ServiceRebalanceScaleOut"],
    ["drain", "ServiceRebalanceDrain"],
  ]),
};

/** The machine that gives a fleet nodes, and takes them away, with the load: on the same page, with `nodes.most`. */
export const RESIZE: Page = {
  path: REBALANCE.path,
  machines: new Map([["resize", "ServiceAutoscalingResize"]]),
};

/** The page of the machine that upgrades. */
export const UPGRADE: Page = {
  path: join(DOCS, "upgrade.md"),
  machines: new Map([["upgrade", "ServiceUpgrade"]]),
};

/** The page of the machines that load dropped files and that settle stopped loads. */
export const INGEST: Page = {
  path: join(DOCS, "ingest.md"),
  machines: new Map([
    ["ingest", "ServiceIngestMachine"],
    ["settle", "ServiceIngestSettle"],
  ]),
};

/** The parts of a state that a drawing needs. */
export interface State {
  readonly Type: string;
  readonly Comment?: string;
  readonly Next?: string;
  readonly End?: boolean;
  readonly Default?: string;
  readonly Seconds?: number;
  readonly SecondsPath?: string;
  readonly MaxConcurrency?: number;
  readonly ItemsPath?: string;
  readonly TimeoutSeconds?: number;
  readonly Choices?: readonly (Condition & { readonly Next: string })[];
  readonly Catch?: readonly {
    readonly ErrorEquals: readonly string[];
    readonly Next: string;
    readonly ResultPath?: string;
  }[];
  readonly Retry?: readonly { readonly ErrorEquals: readonly string[]; readonly MaxAttempts?: number }[];
  readonly Parameters?: Record<string, unknown>;
  readonly Result?: unknown;
  readonly ResultPath?: string | null;
  readonly Resource?: unknown;
  readonly ItemProcessor?: Definition;
}

/** A condition of a choice. */
interface Condition {
  readonly Variable?: string;
  readonly And?: readonly Condition[];
  readonly Or?: readonly Condition[];
  readonly [operator: string]: unknown;
}

/** A definition: a whole one, or that of the states inside a Map. */
export interface Definition {
  readonly StartAt: string;
  readonly States: Record<string, State>;
  readonly TimeoutSeconds?: number;
}

/** Converts a definition to text, in which what stands for a value has no quotes: they would end the text around it. */
function unquoted(definition: unknown): string {
  const { "Fn::Join": [between, parts] = ["", [definition]] } = definition as {
    "Fn::Join"?: [string, unknown[]];
  };
  return parts
    .map((part) => (typeof part === "string" ? part : flat(part).replaceAll('"', "'")))
    .join(between);
}

/** Returns the definitions of a page's machines, taken from a template. */
export function definitions(template: Template, page: Page): Map<string, Definition> {
  const of = (id: string): Definition => {
    const { Properties } = named(template, "AWS::StepFunctions::StateMachine", id);
    return JSON.parse(unquoted(Properties.DefinitionString));
  };
  return new Map([...page.machines].map(([name, id]) => [name, of(id)]));
}

/** Returns a definition as a Mermaid drawing. */
export function draw(definition: Definition): string {
  const lines: string[] = ["flowchart TD"];
  const ids = new Map<string, string>();
  const of = (name: string): string => {
    const known = ids.get(name) ?? `s${ids.size}`;
    ids.set(name, known);
    return known;
  };
  const inside = (part: Definition, indent: string): void => {
    for (const [name, state] of Object.entries(part.States)) {
      if (state.ItemProcessor) {
        const most = state.MaxConcurrency ? `, ${state.MaxConcurrency} at once` : "";
        lines.push(`${indent}subgraph ${of(name)}["${name}: for each ${itemOf(state)}${most}"]`);
        inside(state.ItemProcessor, `${indent}  `);
        lines.push(`${indent}end`);
      } else lines.push(`${indent}${of(name)}${shape(name, state)}`);
    }
    for (const [name, state] of Object.entries(part.States)) {
      const edge = (to: string, label = ""): void => {
        lines.push(`${indent}${of(name)} -->${label && `|"${label}"|`} ${of(to)}`);
      };
      if (state.Next) edge(state.Next);
      for (const choice of state.Choices ?? []) edge(choice.Next, condition(choice));
      if (state.Default) edge(state.Default, "otherwise");
      for (const { ErrorEquals, Next } of state.Catch ?? []) {
        const what = ErrorEquals.includes("States.ALL") ? "an error" : ErrorEquals.join(", ");
        lines.push(`${indent}${of(name)} -.->|"${what}"| ${of(Next)}`);
      }
    }
  };
  inside(definition, "  ");
  return lines.join("\n");
}

/** Names the item of a Map: the last word of the path to the items, in the singular. */
function itemOf({ ItemsPath = "items" }: State): string {
  return ItemsPath.replace(/^.*\./, "").replace(/s$/, "");
}

function shape(name: string, state: State): string {
  const time = state.Seconds ? ` (${state.Seconds} s)` : state.SecondsPath ? ` (${state.SecondsPath})` : "";
  const text = `${name}${time}`;
  if (state.Type === "Choice") return `{"${text}"}`;
  if (state.Type === "Wait") return `("${text}")`;
  if (state.Type === "Succeed" || state.Type === "Fail") return `(["${text}"])`;
  return `["${text}"]`;
}

function condition(part: Condition): string {
  if (part.And) return part.And.map(condition).join(" and ");
  if (part.Or) return part.Or.map(condition).join(" or ");
  const signs: Record<string, string> = {
    BooleanEquals: "is",
    StringEquals: "is",
    StringEqualsPath: "is",
    NumericEquals: "is",
    StringMatches: "is like",
    NumericGreaterThan: "is above",
    NumericGreaterThanEquals: "≥",
  };
  const variable = String(part.Variable).replace("$.", "");
  if ("IsPresent" in part) return `${variable} ${part.IsPresent ? "is there" : "is not there"}`;
  const [operator, value] = Object.entries(part).find(([key]) => key in signs) ?? [];
  if (operator === undefined) throw new Error(`no words for the condition ${JSON.stringify(part)}`);
  // A reference to a resource, whose name may have a hash of its content.
  const what = /^<.*>$/.test(String(value))
    ? "the deployed one"
    : String(value).replace("$.", "").replaceAll('"', "'");
  return `${variable} ${signs[operator]} ${what}`;
}

/** Returns a page's text with the drawings inserted. */
function withDrawings({ path }: Page, drawings: ReadonlyMap<string, string>): string {
  let text = readFileSync(path, "utf8");
  for (const [name, drawing] of drawings) {
    const begin = `<!-- drawing: ${name} -->`;
    const end = `<!-- end of drawing: ${name} -->`;
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${path} has no place for ${name}`);
    text = `${text.slice(0, from + begin.length)}\n\n\`\`\`mermaid\n${drawing}\n\`\`\`\n\n${text.slice(to)}`;
  }
  return text;
}

/** Returns what a page's text should be for a template. */
export function current(template: Template, page: Page): string {
  const drawn = [...definitions(template, page)].map(
    ([name, definition]) => [name, draw(definition)] as const,
  );
  return withDrawings(page, new Map(drawn));
}

if (process.argv[1] && resolve(process.argv[1]) === import.meta.filename) {
  const { service } = example();
  for (const page of [REBALANCE, UPGRADE, INGEST]) writeFileSync(page.path, current(service, page));
  const grows = example({ nodes: { most: 9 } }).service;
  writeFileSync(RESIZE.path, current(grows, RESIZE));
}
