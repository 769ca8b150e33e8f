#!/bin/sh
# Writes the clients' secret, which the container gets as a variable, to a file in memory, and then becomes the worker.
# Arguments are passed on as flags of `tidegraph worker`.
set -eu

folder=${TIDEGRAPH_SECRETS:-/dev/shm}
umask 077
printf '%s\n' "$CLIENT_TOKEN" >"$folder/client-token"
unset CLIENT_TOKEN
exec "${TIDEGRAPH_PROGRAM:-/usr/local/bin/tidegraph}" worker --token-file "$folder/client-token" "$@"
