"""Checks IAM policies with parliament, without an account.

Reads a JSON object from standard input, each policy by its name, and prints what is wrong as a JSON array.
"""

import json
import sys

from parliament import analyze_policy_string

# Too general to be an error: whether an action that knows no resource may stand beside "*" is cdk-nag's business, where
# each exception has its reason.
SKIPPED = {"RESOURCE_STAR"}


def findings(policies):
    for name, policy in policies.items():
        for found in analyze_policy_string(json.dumps(policy), include_community_auditors=True).findings:
            if found.issue not in SKIPPED:
                about = [found.detail, found.location.get("actions"), found.location.get("string")]
                yield {"policy": name, "issue": found.issue, "detail": json.dumps([one for one in about if one])}


if __name__ == "__main__":
    json.dump(list(findings(json.load(sys.stdin))), sys.stdout)
