/** Reason why a drop cannot be loaded, which its owner can correct. The message becomes part of the report. */
export class Refused extends Error {
  override readonly name = "Refused";
}
