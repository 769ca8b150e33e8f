/**
 * What hostile queries, clients and files try. Each abuse returns the answers that it got; `expect` says which statuses
 * are right. 0 is a connection that the service closed without an answer.
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { hold, LIMITED, times } from "./clients.mjs";
import { LANGUAGES } from "./languages.mjs";
import { PROTOCOLS } from "./protocols.mjs";

/** @typedef {import("./service.mjs").Service} Service */
/** @typedef {import("./service.mjs").Answer} Answer */

/**
 * @typedef {object} Abuse
 * @property {string} name
 * @property {string} what
 * @property {readonly number[]} expect
 * @property {(service: Service) => Promise<Answer[]>} run
 */

/** Answers of queries, one after the other. @param {Service} service @param {readonly string[]} queries */
async function inTurn(service, queries) {
  const answers = [];
  for (const query of queries) answers.push(await service.cypher(query));
  return answers;
}

/** Waits for a load to end. @param {Service} service @param {object} request @returns {Promise<Answer[]>} */
async function load(service, request) {
  const begun = await service.ask("/loader", { body: JSON.stringify(request) });
  const id = /"loadId"\s*:\s*"([^"]+)"/.exec(begun.text)?.[1];
  if (!id) return [begun];
  for (let waited = 0; waited < 300; waited += 1) {
    const { status, text } = await service.ask(`/loader/${id}?details=true&errors=true`, { method: "GET" });
    if (/LOAD_(COMPLETED|FAILED|CANCELLED|[A-Z_]*ERROR|[A-Z_]*MISMATCH)/.test(text)) {
      const leaks = /root:x:|PATH=/.test(text);
      return [
        leaks
          ? { status: 500, text: `the report has a line of a file of the machine: ${text}` }
          : { status, text },
      ];
    }
    await sleep(100);
  }
  return [{ status: 500, text: `load ${id} did not end in 30 s` }];
}

/** @param {string} source @param {object} [more] */
const from = (source, more = {}) => ({ source, format: "csv", region: "us-east-1", ...more });

/** @type {readonly Abuse[]} */
export const ABUSES = [
  {
    name: "long-patterns",
    what: "patterns of 4,500 and 20,000 hops, 100,000 columns, 10,000 nested parentheses and lists",
    expect: LIMITED,
    run: (service) =>
      inTurn(service, [
        `MATCH (a)${"-->()".repeat(4_500)} RETURN count(*)`,
        `MATCH (a)${"-->()".repeat(20_000)} RETURN count(*)`,
        `RETURN ${Array.from({ length: 100_000 }, (_, index) => `${index} AS c${index}`).join(", ")}`,
        `RETURN ${"(".repeat(10_000)}1${")".repeat(10_000)}`,
        `RETURN ${"[".repeat(10_000)}${"]".repeat(10_000)}`,
        `RETURN ${"NOT ".repeat(50_000)}true`,
      ]),
  },
  {
    name: "growing-values",
    what: "strings and lists that double, long comparisons, expensive regular expressions",
    expect: LIMITED,
    run: (service) =>
      inTurn(service, [
        "WITH reduce(s = 'a,', i IN range(1, 26) | s + s) AS s RETURN size(split(s, ','))",
        `WITH 'ab' AS s ${"WITH s + s AS s ".repeat(60)}RETURN size(s)`,
        "WITH range(1, 2000000) AS l UNWIND range(1, 1000) AS i WITH i, l WHERE -i IN l RETURN count(*)",
        "WITH range(1, 2000000) AS l UNWIND range(1, 1000) AS i WITH l WHERE l = l + [i] RETURN count(*)",
        `WITH [1] AS l ${"WITH l + l AS l ".repeat(40)}RETURN size(l)`,
        "WITH reduce(s = 'a', i IN range(1, 20) | s + s) AS s UNWIND range(1, 1000) AS i WITH s, i WHERE s =~ '(a|b|ab)*c' RETURN count(*)",
      ]),
  },
  {
    name: "heavy-queries",
    what: "16 products of the whole graph with itself at once",
    expect: LIMITED,
    run: (service) =>
      times(16, () => service.cypher("MATCH (a), (b), (c) WHERE a.k + b.k = c.k * 2 RETURN count(*)")),
  },
  {
    name: "endless-traversals",
    what: "Gremlin that repeats without an end or nests 5,000 steps deep",
    expect: LIMITED,
    run: (service) =>
      times(4, async () => [
        await service.gremlin("g.V().repeat(both()).emit().path()"),
        await service.gremlin(`g.V()${".where(__.out()".repeat(5_000)}${")".repeat(5_000)}`),
        await service.gremlin(`g.V()${".out()".repeat(20_000)}.count()`),
      ]),
  },
  {
    name: "never-read",
    what: "24 clients that ask for large answers and read none of it",
    expect: LIMITED,
    run: (service) => {
      const body = JSON.stringify({
        query: "UNWIND range(1, 3000000) AS i RETURN i, 'a text for each of them' AS t",
      });
      const head = `POST /openCypher HTTP/1.1\r\nhost: 127.0.0.1:${service.port}\r\ncontent-type: application/json\r\n`;
      return hold(service, 24, `${head}content-length: ${body.length}\r\n\r\n${body}`, 12_000);
    },
  },
  {
    name: "leaving-clients",
    what: "100 clients that leave while their query runs",
    expect: [0, ...LIMITED],
    run: (service) =>
      times(100, async (index) => {
        const leave = AbortSignal.timeout(50 + 5 * index);
        return service.cypher("MATCH (a), (b), (c) WHERE a.k + b.k = c.k * 2 RETURN count(*)", {}, leave);
      }),
  },
  {
    name: "half-heads",
    what: "600 connections with half a head",
    expect: [],
    run: (service) => hold(service, 600, "POST /openCypher HTTP/1.1\r\nhost: 127.0.0.1", 5_000),
  },
  {
    name: "half-bodies",
    what: "200 connections with half a body",
    expect: [],
    run: (service) =>
      hold(
        service,
        200,
        `POST /openCypher HTTP/1.1\r\nhost: 127.0.0.1:${service.port}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"query`,
        5_000,
      ),
  },
  {
    name: "idle-connections",
    what: "600 connections without a byte",
    expect: [],
    run: (service) => hold(service, 600, "", 5_000),
  },
  {
    name: "ten-thousand",
    what: "10,000 connections without a byte",
    expect: [],
    run: (service) => hold(service, 10_000, "", 3_000),
  },
  {
    name: "foreign-pages",
    what: "writes of another site's page by form, text and GET, and names that resolve to this machine",
    expect: [400, 403, 405],
    run: async (service) => {
      const write = "CREATE (:Foreign)";
      const form = new URLSearchParams({ query: write }).toString();
      const asForm = { "content-type": "application/x-www-form-urlencoded" };
      const origin = { origin: "https://elsewhere.example" };
      return Promise.all([
        service.ask("/openCypher", { headers: { ...asForm, ...origin }, body: form }),
        service.ask("/openCypher", { headers: { ...asForm, "sec-fetch-site": "cross-site" }, body: form }),
        service.ask("/openCypher", {
          headers: { "content-type": "text/plain" },
          body: JSON.stringify({ query: write }),
        }),
        service.ask("/openCypher", {
          headers: { host: "rebound.example" },
          body: JSON.stringify({ query: write }),
        }),
        service.ask(`/openCypher?${form}`, { method: "GET" }),
      ]);
    },
  },
  {
    name: "bodies",
    what: "nested JSON, invalid JSON, parameters of 15 MB, bodies over the limit, unknown paths and methods",
    expect: [200, 400, 404, 405, 413, 431],
    run: async (service) => {
      const deep = `${'{"query":"RETURN 1","parameters":'}${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
      const many = JSON.stringify({ l: Array.from({ length: 1_500_000 }, (_, index) => index) });
      return [
        await service.ask("/openCypher", { body: deep }),
        await service.ask("/openCypher", { body: Buffer.from([0x7b, 0xff, 0xfe, 0x00]) }),
        await service.ask("/openCypher", {
          body: JSON.stringify({ query: "RETURN size($l)", parameters: many }),
        }),
        await service.ask("/openCypher", { body: "x".repeat(20 << 20) }),
        await service.ask("/gremlin", { body: "[]" }),
        await service.ask(`/${"a/".repeat(2_000)}`, { method: "GET" }),
        await service.ask("/openCypher", { method: "BREW", body: "{}" }),
        await service.ask("/status", { method: "GET", headers: { "x-long": "y".repeat(60_000) } }),
      ];
    },
  },
  {
    name: "foreign-files",
    what: "loads of /etc/passwd, /proc, /sys, a parent folder, a link, and regions and buckets that are addresses",
    expect: [400, 403, 404],
    run: async (service) => {
      const folder = join(service.allowed, "links");
      mkdirSync(folder, { recursive: true });
      symlinkSync("/etc/passwd", join(folder, "vertices.csv"));
      symlinkSync(folder, join(folder, "itself"));
      const requests = [
        from("file:///etc/passwd"),
        from("file:///proc/self/environ"),
        from("file:///sys"),
        from(`file://${service.allowed}/../data`),
        from(`file://${folder}`),
        from("s3://bucket/key", { region: "@127.0.0.1:1/" }),
        from("s3://127.0.0.1:1/?/key"),
      ];
      const answers = [];
      for (const request of requests) {
        const [answer] = await load(service, request);
        // A load that is refused after it was accepted is as good as one that is refused at once.
        const failed = answer?.status === 200 && /LOAD_(FAILED|[A-Z_]*ERROR)/.test(answer.text);
        answers.push(failed ? { status: 400, text: answer.text } : /** @type {Answer} */ (answer));
      }
      return answers;
    },
  },
  {
    name: "odd-files",
    what: "a compressed field of 200 MB, a row of a million columns, a .gz that is not gzip, values out of range",
    expect: [200, 400],
    run: async (service) => {
      /** @param {string} name @param {string | Buffer} bytes */
      const file = (name, bytes) => {
        const folder = join(service.allowed, name.replace(/\..*/, ""));
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, name), bytes);
        return load(service, from(`file://${folder}`));
      };
      return [
        ...(await file("field.csv.gz", gzipSync(`~id,~label,t:String\n1,Odd,${"a".repeat(200_000_000)}\n`))),
        ...(await file(
          "wide.csv",
          `~id,~label,${Array.from({ length: 1_000_000 }, (_, i) => `p${i}:Int`).join(",")}\n1,Odd\n`,
        )),
        ...(await file("none.csv.gz", "~id,~label\n1,Odd\n")),
        ...(await file("range.csv", "~id,~label,d:Double,i:Byte\n1,Odd,1e400,300\n")),
        ...(await file("quote.csv", `~id,~label\n"${"x\n".repeat(1_000_000)}`)),
      ];
    },
  },
  ...LANGUAGES,
  ...PROTOCOLS,
];
