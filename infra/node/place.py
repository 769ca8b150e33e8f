#!/usr/bin/python3
"""Gives partitions that have too few replicas to nodes that are up, with `tidegraph-node place`.

Every node runs it every minute, and only one of them does anything: the first by name of those that are up. Right after a graph was made it does so
at once, as soon as there are as many nodes as there should be. Later it waits until a replica has been missing for some minutes, since a daemon that
was started anew comes back by itself, sooner and without moving data. It adds replicas and never takes one away.

What it must never do: place when nobody knows how many nodes there should be, or while the map cannot be read.
"""

import json
import os
import subprocess
import sys
import time

NODE = os.environ.get("TIDEGRAPH_NODE_PROGRAM", "/opt/tidegraph/bin/tidegraph-node")
SINCE = os.path.join(os.environ.get("TIDEGRAPH_RUN", "/run/tidegraph"), "missing-since")
# A node that is joining restores what the map says that it has.
THERE = ("up", "joining", "draining")


def missing(graph, replication):
    """How many replicas there are too few, and whether there is none at all yet."""
    there = {node["id"] for node in graph["nodes"] if node["state"] in THERE}
    short, none = 0, True
    for partition in graph["partitions"]:
        replicas = sum(replica["node"] in there for replica in partition["replicas"])
        short += max(0, replication - replicas)
        none = none and not partition["replicas"]
    return short, none


def waited(patience):
    """Whether replicas have been missing for so many seconds."""
    now = time.time()
    try:
        with open(SINCE, encoding="ascii") as file:
            since = float(file.read())
    except (OSError, ValueError):
        since = now
        with open(SINCE, "w", encoding="ascii") as file:
            file.write(str(now))
    return now - since >= patience


def main():
    me = os.environ["TIDEGRAPH_NODE"]
    nodes, replication = int(os.environ["NODES"]), int(os.environ["REPLICATION"])
    patience = float(os.environ.get("PLACE_PATIENCE_S", "300"))
    # Where the map is stands in the environment.
    printed = subprocess.run([NODE, "map"], check=True, stdout=subprocess.PIPE, timeout=30)
    graph = json.loads(printed.stdout)
    short, none = missing(graph, replication)
    if short == 0:
        if os.path.exists(SINCE):
            os.remove(SINCE)
        return 0
    up = sorted(node["id"] for node in graph["nodes"] if node["state"] == "up")
    if len(up) < nodes or up[0] != me:
        return 0
    if not none and not waited(patience):
        return 0
    print(f"{short} replicas are missing; placing them on {len(up)} nodes", flush=True)
    return subprocess.run([NODE, "place", "--nodes", str(nodes), "--timeout-s", "3600"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
