/**
 * The part of a key's policy that is about a role of the account. IAM simulates policies of resources for users only, so
 * that part is simulated as if it were a policy of the role: its principals are compared here.
 */

interface Statement {
  readonly Sid?: string;
  readonly Principal?: "*" | { readonly AWS?: string | readonly string[] };
  readonly NotPrincipal?: unknown;
}

/**
 * Returns the statements of a policy that apply to a role, without their principals and their ids: in a key's policy an id
 * may have spaces, which IAM takes in no policy of its own. A statement about the account applies
 * to all of its roles: an allow lets IAM decide about them.
 *
 * @throws if a statement names whom it is not about, which is not compared here
 */
export function applying(policy: string, roleArn: string): object[] {
  const { Statement = [] } = JSON.parse(policy) as { Statement?: Statement | Statement[] };
  const [partition, account = ""] = [roleArn.split(":")[1], roleArn.split(":")[4]];
  const names = new Set(["*", account, `arn:${partition}:iam::${account}:root`, roleArn]);
  return [Statement].flat().flatMap(({ Sid: _, Principal, NotPrincipal, ...rest }) => {
    if (NotPrincipal !== undefined)
      throw new Error("its policy has NotPrincipal, which is not looked at here");
    const principals = typeof Principal === "string" ? [Principal] : [Principal?.AWS ?? []].flat();
    return principals.some((one) => names.has(one)) ? [rest] : [];
  });
}
