/** A drop that cannot be loaded, for a reason that whoever dropped it can mend. Its message goes into the report. */
export class Refused extends Error {
  override readonly name = "Refused";
}
