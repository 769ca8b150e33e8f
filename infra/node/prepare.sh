#!/bin/bash
# Prepares a machine for the daemon at each boot: mounts a file system on the machine's NVMe, and writes the variables
# that describe the machine.
#
# Instance storage is empty after a stop and unchanged after a reboot, so an existing file system is used again. The
# daemon needs none of its data: replicas are restored from checkpoints and the log.
set -euo pipefail

MOUNT=${TIDEGRAPH_MOUNT:-/var/lib/tidegraph}
RUN=${TIDEGRAPH_RUN:-/run/tidegraph}
BY_ID=${TIDEGRAPH_DISKS:-/dev/disk/by-id}
LABEL=tidegraph

# Lists whole disks. Skips links to partitions, and second links to the same disk.
disks() {
  local link
  for link in "$BY_ID"/nvme-Amazon_EC2_NVMe_Instance_Storage_*; do
    if [[ -e $link && $link != *-part* && ! $link =~ _[0-9]+$ ]]; then readlink -f "$link"; fi
  done | sort -u
}

# The RAID that a disk belongs to. The kernel may have put it together at the start, under a name of its own such as
# /dev/md127, which it did not have when it was made.
array() {
  lsblk --noheadings --raw --output PATH,TYPE "$1" | awk '$2 ~ /^raid/ {print $1; exit}'
}

device() {
  local raid
  mapfile -t found < <(disks)
  case ${#found[@]} in
    0)
      echo "there is no NVMe instance storage below $BY_ID" >&2
      return 1
      ;;
    1) echo "${found[0]}" ;;
    *)
      # Several disks form a RAID 0, so that all of them work at the same time.
      raid=$(array "${found[0]}")
      if [[ -z $raid ]]; then
        raid=/dev/md/$LABEL
        mdadm --assemble "$raid" "${found[@]}" >&2 ||
          mdadm --create "$raid" --run --level=0 --raid-devices=${#found[@]} "${found[@]}" >&2
      fi
      echo "$raid"
      ;;
  esac
}

mount_disk() {
  if mountpoint --quiet "$MOUNT"; then return; fi
  local disk
  disk=$(device)
  if [[ $(blkid --output value --match-tag TYPE "$disk" || true) != xfs ]]; then
    mkfs.xfs -f -q -L "$LABEL" "$disk"
  fi
  mkdir -p "$MOUNT"
  mount -t xfs -o noatime,nodev,nosuid,noexec "$disk" "$MOUNT"
}

# Reads from the metadata service. Its version 2 needs a session.
imds() {
  local session
  session=$(curl -sSf --retry 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
    http://169.254.169.254/latest/api/token)
  curl -sSf --retry 5 -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"
}

# Replicas get seven tenths of the memory. The rest is for the building of indexes, the writing of checkpoints and the
# system.
describe_machine() {
  local kib
  kib=$(awk '/^MemTotal:/ {print $2}' /proc/meminfo)
  mkdir -p "$RUN"
  cat >"$RUN/machine.env" <<EOF
TIDEGRAPH_NODE=$(imds instance-id)
TIDEGRAPH_ZONE=$(imds placement/availability-zone)
ADDRESS=$(imds local-ipv4)
MEMORY_BUDGET=$((kib * 1024 / 10 * 7))
EOF
}

mount_disk
mkdir -p "$MOUNT/spill"
chown tidegraph:tidegraph "$MOUNT/spill"
describe_machine
