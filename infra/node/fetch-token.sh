#!/bin/bash
# Fetches the secret of the fleet into a file in memory, which only the daemon can read. Runs at each start of the
# daemon, so that a restart takes over a new secret.
set -euo pipefail

mkdir -p /run/tidegraph
umask 077
token=$(aws secretsmanager get-secret-value --secret-id "$FLEET_SECRET" --query SecretString --output text)
printf '%s\n' "$token" >/run/tidegraph/token.new
chown tidegraph:tidegraph /run/tidegraph/token.new
mv /run/tidegraph/token.new /run/tidegraph/token
