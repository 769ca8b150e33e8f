#!/bin/sh
# Writes what the container gets as a variable to a file in memory, and then becomes the worker: the access keys of clients,
# or the secret that all of them show. Arguments are passed on as flags of `tidegraph worker`.
set -eu

folder=${TIDEGRAPH_SECRETS:-/dev/shm}
umask 077
if [ -n "${ACCESS_KEYS:-}" ]; then
  printf '%s\n' "$ACCESS_KEYS" >"$folder/access-keys"
  set -- --sigv4-credentials "$folder/access-keys" "$@"
else
  printf '%s\n' "$CLIENT_TOKEN" >"$folder/client-token"
  set -- --token-file "$folder/client-token" "$@"
fi
unset ACCESS_KEYS CLIENT_TOKEN
exec "${TIDEGRAPH_PROGRAM:-/usr/local/bin/tidegraph}" worker "$@"
