#!/bin/bash
# Stops the daemon once the Auto Scaling group terminates the machine and no replica is on it any more. An orderly stop
# gives the lease of the sequencer back and sends readers to other replicas. The group waits for this as long as its
# lifecycle hook says.
set -euo pipefail

session=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
state=$(curl -sSf -H "X-aws-ec2-metadata-token: $session" \
  http://169.254.169.254/latest/meta-data/autoscaling/target-lifecycle-state)
[[ $state == Terminated ]] || exit 0
held=0
# A daemon may serve several graphs.
for graph in ${TIDEGRAPH_GRAPH//,/ }; do
  of_graph=$(/opt/tidegraph/bin/tidegraph-node map --graph "$graph" | python3 -c '
import json, os, sys
me = os.environ["TIDEGRAPH_NODE"]
print(sum(replica["node"] == me for one in json.load(sys.stdin)["partitions"] for replica in one["replicas"]))')
  held=$((held + of_graph))
done
if [[ $held == 0 ]]; then
  systemctl stop tidegraph-node.service
fi
