/** The base of the images that this app builds. */
import { text } from "./check.ts";

/** Amazon Linux 2023, minimal: an image for several processors, including arm64. */
const BASE_IMAGE =
  "public.ecr.aws/amazonlinux/amazonlinux:2023-minimal@sha256:6621917fc09ad8c935aa5ccc32c933c6dec250deafae54af86e154fcd19f5ed0";

/** Returns a base image that is given by its digest, or the default one. */
export function baseImage(prop: string, given: string | undefined): string {
  return text(prop, given ?? BASE_IMAGE, /@sha256:[0-9a-f]{64}$/, "an image by its digest, NAME@sha256:…");
}
