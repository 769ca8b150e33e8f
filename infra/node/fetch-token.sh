#!/bin/bash
# Fetches the secret that the fleet shares into memory, where only the daemon can read it. At each start, so that a new secret is taken.
set -euo pipefail

mkdir -p /run/tidegraph
umask 077
token=$(aws secretsmanager get-secret-value --secret-id "$FLEET_SECRET" --query SecretString --output text)
printf '%s\n' "$token" >/run/tidegraph/token.new
chown tidegraph:tidegraph /run/tidegraph/token.new
mv /run/tidegraph/token.new /run/tidegraph/token
