#!/bin/bash
# Stops the daemon in good order when the Auto Scaling group takes the machine away and others have what it held: the lease of the sequencer is given back, and readers ask
# other replicas, before the machine is gone. The group waits; its lifecycle hook says how long.
set -euo pipefail

session=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
state=$(curl -sSf -H "X-aws-ec2-metadata-token: $session" \
  http://169.254.169.254/latest/meta-data/autoscaling/target-lifecycle-state)
[[ $state == Terminated ]] || exit 0
held=$(/opt/tidegraph/bin/tidegraph-node map | python3 -c '
import json, os, sys
me = os.environ["TIDEGRAPH_NODE"]
print(sum(replica["node"] == me for one in json.load(sys.stdin)["partitions"] for replica in one["replicas"]))')
if [[ $held == 0 ]]; then
  systemctl stop tidegraph-node.service
fi
