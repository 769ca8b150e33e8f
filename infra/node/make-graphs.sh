#!/bin/bash
# Makes the graphs of a list that do not exist yet: one in each line, its name and the flags of `tidegraph-node init`. It
# changes nothing that exists, so every machine may run it. A graph that cannot be made does not keep it from the others;
# it fails at the end then, and systemd starts it again.
set -uo pipefail

HOME_DIR=${TIDEGRAPH_HOME:-/opt/tidegraph}

failed=()
while read -r graph list; do
  read -ra flags <<<"$list"
  "$HOME_DIR/bin/tidegraph-node" init --graph "$graph" "${flags[@]}" \
    --log-replication "$LOG_REPLICATION" --log-in-sync "$LOG_IN_SYNC" </dev/null || failed+=("$graph")
done <"$HOME_DIR/etc/graphs"
if [[ ${#failed[@]} != 0 ]]; then
  echo "these graphs are not made yet: ${failed[*]}" >&2
  exit 1
fi
