"""Whether the Ray cluster answers, and what its nodes offer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from django.conf import settings

from evaluation.operations.health import Finding

ASK_SECONDS = 60.0
ASK = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(json.dumps([sum(node["Alive"] for node in ray.nodes()), ray.cluster_resources()]))
"""
NAMES = ("docker", "measure", "CPU", "GPU")
SILENT = "RAY_ADDRESS is set, but no cluster answers there: models wait (docs/cluster.md)."
PLAIN = "Ray's connections are not encrypted: RAY_USE_TLS=1 (docs/cluster.md)."
OPEN = "Anybody who reaches the cluster runs code on it: RAY_AUTH_MODE=token (docs/cluster.md)."


def check_cluster() -> Iterator[Finding]:
    """Nothing where the site has none."""
    if not settings.RAY_ADDRESS:
        return
    environment = {"RAY_AUTH_MODE": "token", **os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", ASK, settings.RAY_ADDRESS]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=ASK_SECONDS
        )
        nodes, offered = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        yield Finding("cluster", "bad", SILENT)
        return
    has = ", ".join(f"{name} {offered[name]:g}" for name in NAMES if name in offered)
    yield Finding("cluster", "ok", f"{nodes} nodes, {has}")
    if environment["RAY_AUTH_MODE"] != "token":
        yield Finding("cluster", "bad", OPEN)
    if environment.get("RAY_USE_TLS") != "1":
        yield Finding("cluster", "note", PLAIN)
