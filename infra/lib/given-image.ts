/**
 * Images that exist before the app is deployed, in place of those that the app builds. What can be known of one is its
 * name: a registry that tasks reach, and a tag that stays and is not that of another release.
 */
import { Stack, Token } from "aws-cdk-lib";
import type { DockerImageAsset } from "aws-cdk-lib/aws-ecr-assets";
import * as ecs from "aws-cdk-lib/aws-ecs";
import { baseImage } from "./base-image.ts";
import { InvalidProp } from "./check.ts";
import type { IGraphState } from "./constructs/graph-state.ts";
import { VERSION } from "./version.ts";

/** The two props by which an image is chosen. */
interface Choice {
  readonly image?: ecs.ContainerImage;
  readonly baseImage?: string;
}

/**
 * Returns the given image, or builds one.
 *
 * @param of the path of the prop that has both, such as `workers`
 */
export function imageOf(
  of: string,
  { image, baseImage: base }: Choice,
  build: (base: string) => DockerImageAsset,
): ecs.ContainerImage {
  if (image === undefined)
    return ecs.ContainerImage.fromDockerImageAsset(build(baseImage(`${of}.baseImage`, base)));
  if (base !== undefined)
    throw new InvalidProp(`${of}.baseImage`, base, `left out with ${of}.image, which is used as it is`);
  return image;
}

/**
 * Checks the name of the given image of a container. What is known only at deployment passes.
 *
 * @param isOurs whether the image has a program of ours, so that its version has to be that of the constructs
 */
export function checkImage(
  prop: string,
  container: ecs.ContainerDefinition,
  { network }: IGraphState,
  isOurs: boolean,
): void {
  const name = container.imageName;
  checkTag(prop, name, isOurs);
  if (!network.isOwn || Token.isUnresolved(name)) return;
  const [, region] = /^\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.[a-z.]+\//.exec(name) ?? [];
  const here = Stack.of(container).region;
  const ways = "the VPC of the deployment has no way to others";
  if (region === undefined)
    throw new InvalidProp(prop, name, `in a private repository of Amazon ECR: ${ways}`);
  if (!Token.isUnresolved(here) && region !== here)
    throw new InvalidProp(prop, name, `in a repository in ${here}: ${ways}`);
}

/** Refuses an image without a tag or digest, the newest one, and one of another release. */
function checkTag(prop: string, name: string, isOurs: boolean): void {
  if (/@sha256:[0-9a-f]{64}$/.test(name)) return;
  // The end of a name that is known only at deployment stands in braces.
  if (name.endsWith("}")) return;
  const tag = /:([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$/.exec(name)?.[1];
  if (tag === undefined || tag === "latest") {
    const example = isOurs ? `the tag of a release, such as ${VERSION}` : "a tag that stays";
    throw new InvalidProp(
      prop,
      name,
      `given with a digest or ${example}: tasks that start later would run others`,
    );
  }
  if (!isOurs) return;
  const version = /^v?(\d+\.\d+\.\d+)(?![\d.])/.exec(tag)?.[1];
  if (version !== undefined && version !== VERSION)
    throw new InvalidProp(prop, name, `of ${VERSION}, the release of these constructs`);
}
