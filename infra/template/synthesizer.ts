/**
 * Makes templates that need no bootstrapped account. Parameters name a bucket and a repository of images. Assets are in
 * them under their hashes, and are uploaded before a template is deployed. CDK's other synthesizers refuse assets, or name
 * the bucket, the repository and the roles of `cdk bootstrap`.
 */
import { basename } from "node:path";
import {
  CfnParameter,
  type CfnParameterProps,
  type DockerImageAssetLocation,
  type DockerImageAssetSource,
  type FileAssetLocation,
  FileAssetPackaging,
  type FileAssetSource,
  type ISynthesisSession,
  StackSynthesizer,
} from "aws-cdk-lib";
import { ASSETS_BUCKET, ASSETS_PREFIX, REPOSITORY } from "./parameters.ts";

/** The folder of files below `AssetsPrefix`. */
export const FILES = "assets";

/** What templates of one folder refer to. All of them share it, because a name stands for the content. */
export class Assets {
  /** Files by their path in the folder. */
  readonly files = new Map<string, FileAssetSource>();
  /** Images by their tag. */
  readonly images = new Map<string, DockerImageAssetSource>();
}

export class ParameterSynthesizer extends StackSynthesizer {
  private readonly assets: Assets;

  constructor(assets: Assets) {
    super();
    this.assets = assets;
  }

  /** Returns where the file is. It is zipped in the folder, if the asset is a folder. */
  override addFileAsset(asset: FileAssetSource): FileAssetLocation {
    const { fileName, packaging } = asset;
    if (fileName === undefined) throw new Error(`the asset ${asset.displayName} has no file`);
    // The CDK calls it `asset.HASH`, and the ending of a file.
    const name = basename(fileName).replace(/^asset\./, "");
    const path = `${FILES}/${name}${packaging === FileAssetPackaging.ZIP_DIRECTORY ? ".zip" : ""}`;
    this.assets.files.set(path, asset);
    const bucketName = this.parameter("AssetsBucket", ASSETS_BUCKET);
    const objectKey = `${this.parameter("AssetsPrefix", ASSETS_PREFIX)}${path}`;
    const { region, urlSuffix } = this.boundStack;
    return {
      bucketName,
      objectKey,
      httpUrl: `https://s3.${region}.${urlSuffix}/${bucketName}/${objectKey}`,
      s3ObjectUrl: `s3://${bucketName}/${objectKey}`,
    };
  }

  /** Returns where the image is: in a repository of the account, with the hash of its sources as its tag. */
  override addDockerImageAsset(asset: DockerImageAssetSource): DockerImageAssetLocation {
    if (asset.directoryName === undefined) throw new Error(`the image ${asset.displayName} has no folder`);
    const { sourceHash: imageTag } = asset;
    this.assets.images.set(imageTag, asset);
    const repositoryName = this.parameter("Repository", REPOSITORY);
    const { account, region, urlSuffix } = this.boundStack;
    const imageUri = `${account}.dkr.ecr.${region}.${urlSuffix}/${repositoryName}:${imageTag}`;
    return { imageUri, repositoryName, imageTag };
  }

  override synthesize(session: ISynthesisSession): void {
    this.synthesizeTemplate(session);
    this.emitArtifact(session);
  }

  /** Returns the value of a parameter of the stack, which only stacks with such assets have. */
  private parameter(id: string, props: CfnParameterProps): string {
    const found = this.boundStack.node.tryFindChild(id) as CfnParameter | undefined;
    return (found ?? new CfnParameter(this.boundStack, id, props)).valueAsString;
  }
}
