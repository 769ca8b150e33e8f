/** What a deployment takes from elsewhere by version: archives of a release, images that exist, the machines' image. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import * as ec2 from "aws-cdk-lib/aws-ec2";
import * as ecr from "aws-cdk-lib/aws-ecr";
import * as ecs from "aws-cdk-lib/aws-ecs";
import { AwsSolutionsChecks } from "cdk-nag";
import { Bundle } from "../lib/bundle.ts";
import { InvalidProp } from "../lib/check.ts";
import type { GraphServiceProps } from "../lib/index.ts";
import { ServiceStack } from "../lib/stacks/service-stack.ts";
import { StateStack } from "../lib/stacks/state-stack.ts";
import { temporaryFolder } from "../lib/temporary.ts";
import { VERSION } from "../lib/version.ts";
import { comparable, example, flat, named, ofType, only, placeholders, testApp } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const DIGEST = `sha256:${"b".repeat(64)}`;

const refuses = (prop: string, message: RegExp) => (error: Error) => {
  assert.ok(error instanceof InvalidProp, error.stack);
  assert.equal(error.prop, prop, error.message);
  assert.match(error.message, message);
  return true;
};

/** Makes an archive as a release has it, with placeholders, and returns its path and checksum. */
function archive({
  folder = `tidegraph-${VERSION}-linux-arm64`,
  more = [],
}: {
  folder?: string;
  more?: string[];
} = {}): { path: string; sha256: string } {
  const home = temporaryFolder("archive");
  const programs = placeholders();
  renameSync(programs, join(home, folder));
  // The folder of placeholders is removed by this name in the end.
  mkdirSync(programs);
  for (const one of more) mkdirSync(join(home, one));
  const path = join(home, `${folder}.tar.gz`);
  execFileSync("tar", ["-C", home, "-czf", path, folder, ...more]);
  return { path, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") };
}

test("the constructs have the version of the release", () => {
  assert.equal(VERSION, JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version);
  const script = readFileSync(join(ROOT, "scripts", "lib", "archives.mjs"), "utf8");
  assert.match(script, /`tidegraph-\$\{version\}-linux-\$\{arch\}\.tar\.gz`/);
});

test("the archive of a release makes the same templates as its programs in a folder", () => {
  const { path, sha256 } = archive();
  const from = (props: Partial<GraphServiceProps>) => example({ backup: {}, ...props }).service.toJSON();
  const of = ({ Resources }: ReturnType<Template["toJSON"]>) => comparable(Resources);
  const ours = of(from({}));
  assert.deepEqual(of(from({ bundle: path })), ours);
  assert.deepEqual(of(from({ bundle: path, bundleSha256: sha256 })), ours);
  const renamed = join(dirname(path), "programs.tgz");
  copyFileSync(path, renamed);
  assert.deepEqual(
    readFileSync(new Bundle(renamed, sha256).path("tidegraph-node"), "utf8"),
    "in the place of tidegraph-node\n",
  );
});

test("an archive of another release, processor or content is refused", () => {
  const { path, sha256 } = archive();
  const other = `${sha256.slice(0, -1)}${sha256.endsWith("0") ? "1" : "0"}`;
  assert.throws(() => new Bundle(path, other), refuses("bundleSha256", new RegExp(`which is ${sha256}$`)));
  assert.throws(() => new Bundle(path, "abc"), refuses("bundleSha256", /64 hexadecimal digits/));
  assert.throws(() => new Bundle(placeholders(), sha256), refuses("bundleSha256", /left out with a folder/));
  const of = (folder: string, more: string[] = []) => archive({ folder, more }).path;
  const older = of("tidegraph-0.0.9-linux-arm64");
  assert.throws(
    () => new Bundle(older),
    refuses("bundle", new RegExp(`archive of ${VERSION}.* it has 0\\.0\\.9$`)),
  );
  const before = of(`tidegraph-${VERSION}-rc.1-linux-arm64`);
  assert.throws(() => new Bundle(before), refuses("bundle", /it has .*-rc\.1$/));
  const intel = of(`tidegraph-${VERSION}-linux-x86_64`);
  assert.throws(() => new Bundle(intel), refuses("bundle", /for arm64; it has programs for x86_64$/));
  for (const wrong of [of("programs"), of(`tidegraph-${VERSION}-linux-arm64`, ["other"])])
    assert.throws(() => new Bundle(wrong), refuses("bundle", /archive of a release, with the folder/));
  assert.throws(() => new Bundle(`${path}.not.tar.gz`), refuses("bundle", /that exists$/));
  writeFileSync(path, "no archive");
  assert.throws(() => new Bundle(path), refuses("bundle", /that tar can read/));
});

/** Serves a folder over HTTPS in a process of its own, because synth waits for curl. */
const SERVER = `
const { createServer } = require("node:https");
const { existsSync, readFileSync } = require("node:fs");
const [folder] = process.argv.slice(1);
const read = (name) => readFileSync(folder + "/" + name);
let count = 0;
createServer({ key: read("key.pem"), cert: read("cert.pem") }, (request, response) => {
  count += 1;
  if (request.url === "/count") return response.end(String(count));
  if (request.url === "/plain") return response.writeHead(302, { location: "http://127.0.0.1:1/x.tar.gz" }).end();
  if (!existsSync(folder + request.url)) return response.writeHead(404).end();
  response.end(read(request.url));
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
process.stdin.on("end", () => process.exit()).resume();
`;

test("an archive at an address is loaded once, with its checksum and over https only", async () => {
  const { path, sha256 } = archive();
  const home = dirname(path);
  const certificate = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const files = ["-keyout", join(home, "key.pem"), "-out", join(home, "cert.pem")];
  execFileSync("openssl", [...certificate, ...names, ...files], { stdio: "ignore" });
  const server = spawn(process.execPath, ["-e", SERVER, home], { stdio: ["pipe", "pipe", "inherit"] });
  const { CURL_CA_BUNDLE, XDG_CACHE_HOME } = process.env;
  after(() => {
    server.kill();
    for (const [name, value] of Object.entries({ CURL_CA_BUNDLE, XDG_CACHE_HOME })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  const [port] = await once(createInterface({ input: server.stdout }), "line");
  const at = (name: string) => `https://localhost:${port}/${name}`;
  process.env.CURL_CA_BUNDLE = join(home, "cert.pem");
  process.env.XDG_CACHE_HOME = temporaryFolder("cache");
  const cache = join(process.env.XDG_CACHE_HOME, "tidegraph", "archives");
  const address = at(basename(path));

  assert.throws(() => new Bundle(address), refuses("bundleSha256", /SHA256SUMS/));
  assert.throws(() => new Bundle(address.replace("https", "http"), sha256), refuses("bundle", /with https$/));
  assert.throws(() => new Bundle("s3://bucket/x.tar.gz", sha256), refuses("bundle", /with https$/));
  const other = "0".repeat(64);
  assert.throws(() => new Bundle(address, other), refuses("bundleSha256", new RegExp(`which is ${sha256}$`)));
  assert.throws(() => new Bundle(at("missing.tar.gz"), sha256), refuses("bundle", /can load .*404/));
  assert.throws(() => new Bundle(at("plain"), sha256), refuses("bundle", /can load /));
  assert.deepEqual(readdirSync(cache), [], "nothing of a failed download stays");

  const program = () => readFileSync(new Bundle(address, sha256).path("tidegraph"), "utf8");
  assert.equal(program(), "in the place of tidegraph\n");
  assert.deepEqual(readdirSync(cache), [`${sha256}.tar.gz`]);
  const asked = () => Number(execFileSync("curl", ["--silent", at("count")], { encoding: "utf8" }));
  const before = asked();
  assert.equal(program(), "in the place of tidegraph\n");
  assert.equal(asked(), before + 1);
  // What is damaged in the cache is loaded again.
  writeFileSync(join(cache, `${sha256}.tar.gz`), "damaged");
  assert.equal(program(), "in the place of tidegraph\n");
  assert.equal(asked(), before + 3);
});

/** Makes a service whose props may refer to its stack. */
function made(
  props: (stack: Stack) => Partial<GraphServiceProps>,
  env = {},
): { app: ReturnType<typeof testApp>; template: Template } {
  const app = testApp();
  const { state } = new StateStack(app, "State", { name: "example", graph: "people", ...env });
  const elsewhere = new Stack(testApp(), "Images", env);
  const stack = new ServiceStack(app, "Service", {
    state,
    bundle: placeholders(),
    ...props(elsewhere),
    ...env,
  });
  return { app, template: Template.fromStack(stack) };
}

const repository = (stack: Stack) => ecr.Repository.fromRepositoryName(stack, "Repository", "tidegraph");

test("with images that exist nothing is built, and tasks may pull them", () => {
  const { app, template } = made((stack) => {
    const images = repository(stack);
    const image = (tag: string) => ecs.ContainerImage.fromEcrRepository(images, tag);
    return {
      workers: { image: image(VERSION) },
      backup: { image: image(DIGEST) },
      traces: { image: image("agent-1.300") },
    };
  });
  const built = app
    .synth()
    .getStackByName("Service")
    .assets.filter(({ packaging }) => (packaging as string) === "container-image");
  assert.deepEqual(built, []);
  const { images } = JSON.parse(
    JSON.stringify({
      images: ofType(template, "AWS::ECS::TaskDefinition", 2).flatMap(([, { Properties }]) =>
        Properties.ContainerDefinitions.map(({ Image }: { Image: unknown }) => flat(Image)),
      ),
    }),
  );
  const at = "<AWS::AccountId>.dkr.ecr.<AWS::Region>.<AWS::URLSuffix>/tidegraph";
  assert.deepEqual(
    images.toSorted(),
    [`${at}:${VERSION}`, `${at}:agent-1.300`, `${at}@${DIGEST}`].toSorted(),
  );
  for (const role of ["ServiceWorkersStarter", "ServiceBackupStarter"]) {
    const statements = JSON.stringify(named(template, "AWS::IAM::Policy", role).Properties.PolicyDocument);
    assert.match(statements, /ecr:BatchGetImage/, role);
    assert.match(statements, /:repository\/tidegraph"/, role);
  }
  assert.deepEqual(new AwsSolutionsChecks(app).validateScope(app).violations, []);
  // Everything else is as it is with images that are built.
  const without = comparable(template.toJSON().Resources);
  assert.ok(Object.keys(without).length > 100);
});

test("an image that cannot be right is refused", () => {
  const named = (name: string) => ecs.ContainerImage.fromRegistry(name);
  const here = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/tidegraph";
  const env = { env: { account: "111122223333", region: "eu-west-1" } };
  const wrong: [string, RegExp][] = [
    [here, /digest or the tag of a release/],
    [`${here}:latest`, /digest or the tag of a release, such as/],
    [`${here}:0.0.9`, new RegExp(`of ${VERSION.replaceAll(".", "\\.")}, the release`)],
    [`${here}:v9.1.2-arm64`, /the release of these constructs/],
    [`public.ecr.aws/tidegraph/worker:${VERSION}`, /private repository of Amazon ECR/],
    [`docker.io/tidegraph@${DIGEST}`, /private repository of Amazon ECR/],
    [`${here.replace("eu-west-1", "us-east-1")}:${VERSION}`, /repository in eu-west-1/],
  ];
  for (const [name, message] of wrong) {
    assert.throws(
      () => made(() => ({ workers: { image: named(name) } }), env),
      refuses("workers.image", message),
      name,
    );
    assert.throws(
      () => made(() => ({ backup: { image: named(name) } }), env),
      refuses("backup.image", message),
      name,
    );
  }
  const latest = { traces: { image: named(`${here}:latest`) } };
  assert.throws(() => made(() => latest, env), refuses("traces.image", /a tag that stays/));
  // The agent has versions of its own.
  made(() => ({ traces: { image: named(`${here}:1.300.62`) } }), env);
  for (const fine of [
    `${here}:${VERSION}`,
    `${here}:v${VERSION}-al2023`,
    `${here}:worker-7`,
    `${here}@${DIGEST}`,
  ])
    made(() => ({ workers: { image: named(fine) } }), env);
  const base = `amazonlinux@${DIGEST}`;
  assert.throws(
    () => made(() => ({ workers: { image: named(`${here}:${VERSION}`), baseImage: base } })),
    refuses("workers.baseImage", /left out with workers\.image/),
  );
  // What the image has is known at deployment only; in a repository of the app its name is, too.
  made((stack) => ({ workers: { image: ecs.ContainerImage.fromEcrRepository(repository(stack), VERSION) } }));
  for (const tag of ["latest", "0.0.9", undefined])
    assert.throws(
      () =>
        made((stack) => ({
          workers: { image: ecs.ContainerImage.fromEcrRepository(repository(stack), tag) },
        })),
      refuses("workers.image", tag === "0.0.9" ? /the release of these/ : /digest or the tag/),
      tag,
    );
});

test("machines start from an image of one's own, and packages that it has are not asked for", () => {
  const image = ec2.MachineImage.genericLinux({ "eu-west-1": "ami-0123456789abcdef0" });
  const env = { env: { account: "111122223333", region: "eu-west-1" } };
  const { template } = made(() => ({ nodes: { machineImage: image } }), env);
  const { LaunchTemplateData } = only(template, "AWS::EC2::LaunchTemplate").Properties;
  assert.equal(LaunchTemplateData.ImageId, "ami-0123456789abcdef0");
  const wrong = [
    ec2.MachineImage.latestAmazonLinux2023(),
    ec2.MachineImage.latestWindows(ec2.WindowsVersion.WINDOWS_SERVER_2022_ENGLISH_FULL_BASE),
  ];
  for (const machineImage of wrong)
    assert.throws(
      () => made(() => ({ nodes: { machineImage } })),
      refuses("nodes.machineImage", /Linux for arm64/),
    );
  // The page names the packages that the script asks for.
  const page = readFileSync(join(ROOT, "docs", "deploy.md"), "utf8");
  const script = flat(LaunchTemplateData.UserData["Fn::Base64"]);
  const packages = /^PACKAGES="(.*)"$/m.exec(script)?.[1]?.split(" ") ?? [];
  assert.equal(packages.length, 2);
  const section = /### An image of your own for machines\n(.*?)\n### /s.exec(page)?.[1] ?? "";
  for (const name of packages) assert.ok(section.includes(`\`${name}\``), name);
});
