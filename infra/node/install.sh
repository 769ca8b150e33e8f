#!/bin/bash
# Installs the programs of a machine, and repeats what fails until it succeeds: at the first start, and at each boot after
# it, when it finds them. The units that need the programs wait for this one.
#
# Its log is on the console, in /var/log/tidegraph/start.log, which the agent sends, and, as long as something fails, in
# the data bucket: without its packages a machine has no agent.
set -uo pipefail

HOME_DIR=${TIDEGRAPH_HOME:-/opt/tidegraph}
AGENT=${TIDEGRAPH_AGENT:-/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl}
LOG=${TIDEGRAPH_START_LOG:-/var/log/tidegraph/start.log}
LONGEST_PAUSE=${TIDEGRAPH_LONGEST_PAUSE:-60}
PROGRAM=$HOME_DIR/bin/tidegraph-node

# Runs a step until it succeeds, after pauses that grow.
again() {
  local pause=1
  until "$@"; do
    echo "$1 failed, and is tried again in $pause s" >&2
    aws s3 cp --only-show-errors "$LOG" "$TIDEGRAPH_OBJECTS/machines/$HOSTNAME.log" >/dev/null 2>&1
    sleep "$pause"
    pause=$((pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE))
  done
  echo "$1 is done" >&2
}

is_program() { echo "$PROGRAM_SHA256  $1" | sha256sum --check --status --strict 2>/dev/null; }

program() {
  if is_program "$PROGRAM"; then return; fi
  aws s3 cp --only-show-errors "$PROGRAM_URL" "$PROGRAM.new" || return
  if ! is_program "$PROGRAM.new"; then
    echo "$PROGRAM_URL does not have the checksum $PROGRAM_SHA256" >&2
    return 1
  fi
  chmod 0755 "$PROGRAM.new" && mv "$PROGRAM.new" "$PROGRAM"
}

# They come from AWS's own buckets, through the gateway endpoint of S3.
packages() {
  local list
  read -ra list <<<"$PACKAGES"
  if rpm --quiet -q "${list[@]}"; then return; fi
  dnf install -y -q "${list[@]}"
}

agent() { "$AGENT" -a fetch-config -m ec2 -s -c "file:$HOME_DIR/etc/agent.json"; }

mkdir -p "$(dirname "$LOG")"
exec > >(tee -a "$LOG") 2>&1
again packages
again agent
again program
