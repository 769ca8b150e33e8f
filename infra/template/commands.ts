/** The page in the folder of templates: the commands that deploy it. */
import type { DockerImageAssetSource } from "aws-cdk-lib";
import { SERVICE, STATE } from "./deployment.ts";
import type { Settings } from "./settings.ts";

/** What the page is about. */
interface Contents {
  readonly settings: Settings;
  readonly images: ReadonlyMap<string, DockerImageAssetSource>;
  /** The folder of the sources of images. */
  readonly folder: string;
}

/** Returns the page. */
export function commands(contents: Contents): string {
  const { settings, images } = contents;
  const repository = images.size > 0 ? " Repository=$REPOSITORY" : "";
  const vpc = settings.existingVpc
    ? " \\\n  VpcId=vpc-… FirstSubnet=subnet-… SecondSubnet=subnet-… ThirdSubnet=subnet-…"
    : "";
  const others = settings.nodes.slice(1).map((nodes) => `\`${SERVICE}-${nodes}-nodes.template.json\``);
  return `# Tidegraph ${settings.version} for CloudFormation

Two templates, and the files${images.size > 0 ? " and images" : ""} that they refer to. They need AWS's command line and credentials that may create
what they name; no CDK, no Node, and no bootstrapped account. Run the commands in this folder.

\`\`\`
export AWS_REGION=eu-west-1 AWS_DEFAULT_REGION=eu-west-1
ACCOUNT=$(aws sts get-caller-identity --query Account --output text)
NAME=tidegraph
BUCKET=tidegraph-templates-$ACCOUNT-$AWS_REGION
PREFIX=tidegraph/${settings.version}/
${images.size > 0 ? "REPOSITORY=tidegraph\n" : ""}\`\`\`

## 1. The files

The bucket has to be in the region of the stacks. One that exists is as good; then leave out the first command.

\`\`\`
aws s3 mb s3://$BUCKET
aws s3 sync . s3://$BUCKET/$PREFIX${images.size > 0 ? ` --exclude '${contents.folder}/*'` : ""}
\`\`\`

Keep them as long as the stacks exist: new machines download their program from there, and functions are made of them.
${images.size > 0 ? imageCommands(contents) : ""}
## ${images.size > 0 ? 3 : 2}. The state

MSK takes half an hour or more. \`Protect=false\` belongs to the first deployment alone, so that CloudFormation can remove
what a failed one left.

\`\`\`
aws cloudformation deploy --stack-name $NAME-state --template-file ${STATE}.template.json \\
  --s3-bucket $BUCKET --s3-prefix \${PREFIX}deployed \\
  --parameter-overrides Name=$NAME Protect=false${vpc}
\`\`\`

Then protect it:

\`\`\`
aws cloudformation deploy --stack-name $NAME-state --template-file ${STATE}.template.json \\
  --s3-bucket $BUCKET --s3-prefix \${PREFIX}deployed \\
  --parameter-overrides Name=$NAME Protect=true${vpc}
aws cloudformation update-termination-protection --stack-name $NAME-state --enable-termination-protection
\`\`\`

## ${images.size > 0 ? 4 : 3}. The service

\`\`\`
aws cloudformation deploy --stack-name $NAME-service --template-file ${SERVICE}.template.json \\
  --s3-bucket $BUCKET --s3-prefix \${PREFIX}deployed --capabilities CAPABILITY_IAM \\
  --parameter-overrides Name=$NAME AssetsBucket=$BUCKET AssetsPrefix=$PREFIX${repository}
\`\`\`

In CloudFormation's console, give the address of a template in the bucket,
\`https://BUCKET.s3.REGION.amazonaws.com/PREFIX${SERVICE}.template.json\`, and the same parameters.

The service has ${settings.nodes[0]} storage nodes.${others.length > 0 ? ` For another number, at first or later, deploy ${others.join(" or ")} instead.` : ""}
The section "Without CDK" of Tidegraph's docs/deploy.md says which settings are parameters, which ones are fixed in these
templates, and what comes next.

## Removal

\`aws cloudformation delete-stack --stack-name $NAME-service\` ends the processes. The graph stays in the state. The section
"Everything, with the data" of docs/deploy.md has the commands that delete it too.
`;
}

/** Returns the part about images. */
function imageCommands({ images, folder }: Contents): string {
  const made = [...images].map(([tag, { dockerBuildArgs = {}, platform = "linux/arm64" }]) => {
    const args = Object.entries(dockerBuildArgs).map(([name, value]) => `--build-arg ${name}=${value}`);
    return [
      `docker build --platform ${platform} ${args.join(" ")} \\`,
      `  -t $IMAGES:${tag} ${folder}/${tag}`,
      `docker push $IMAGES:${tag}`,
    ].join("\n");
  });
  return `
## 2. The images

The builds copy files and run no program of the image, so that any machine with Docker can do them. Tags are hashes of the
files: a tag that the repository has already needs no build. If the repository exists, leave out the first command.

\`\`\`
aws ecr create-repository --repository-name $REPOSITORY --image-tag-mutability IMMUTABLE
IMAGES=$(aws ecr describe-repositories --repository-names $REPOSITORY --query 'repositories[0].repositoryUri' --output text)
aws ecr get-login-password | docker login --username AWS --password-stdin \${IMAGES%%/*}
${made.join("\n")}
\`\`\`
`;
}
