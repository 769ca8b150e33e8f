#!/bin/sh
# Writes the secrets, which the container gets as variables, to files in memory, and then becomes the worker. Arguments
# are passed on as flags of `tidegraph worker`.
set -eu

folder=${TIDEGRAPH_SECRETS:-/dev/shm}
umask 077
printf '%s\n' "$FLEET_TOKEN" >"$folder/fleet-token"
printf '%s\n' "$CLIENT_TOKEN" >"$folder/client-token"
unset FLEET_TOKEN CLIENT_TOKEN
exec "${TIDEGRAPH_PROGRAM:-/usr/local/bin/tidegraph}" worker --fleet-token-file "$folder/fleet-token" --token-file "$folder/client-token" "$@"
