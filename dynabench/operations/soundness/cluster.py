"""Checks whether the Ray cluster responds, and what its nodes offer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address

from django.conf import settings

from dynabench.operations.soundness.health import Finding

SCRIPT_SECONDS = 60.0
NODES_SCRIPT = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
at = [node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]]
print(json.dumps([at, ray.cluster_resources()]))
"""
RESOURCE_NAMES = ("docker", "measure", "CPU", "GPU")
SILENT_MESSAGE = (
    "RAY_ADDRESS is set, but no cluster responds there, so models wait (docs/cluster.md)."
)
PLAIN_MESSAGE = "Ray's connections are not encrypted. Set RAY_USE_TLS=1 (docs/cluster.md)."
PUBLIC_MESSAGE = "The node {} has a public address. Use a private network (docs/cluster.md)."
OPEN_MESSAGE = (
    "Anyone who can reach the cluster can run code on it. Set RAY_AUTH_MODE=token "
    "(docs/cluster.md)."
)


def check_cluster() -> Iterator[Finding]:
    """Check that the cluster responds and is protected.

    Yields nothing if the site has no cluster.
    """
    if not settings.RAY_ADDRESS:
        return
    # Tokens are the default here; Ray's own is none.
    environment = {"RAY_AUTH_MODE": "token", **os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", NODES_SCRIPT, settings.RAY_ADDRESS]
    try:
        # A process of its own: `ray.init` cannot be given up, nor undone.
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SCRIPT_SECONDS
        )
        nodes, resources = json.loads(process.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        yield Finding("cluster", "bad", SILENT_MESSAGE)
        return
    resource_text = ", ".join(
        f"{name} {resources[name]:g}" for name in RESOURCE_NAMES if name in resources
    )
    yield Finding("cluster", "ok", f"{len(nodes)} nodes, {resource_text}")
    for address in nodes:
        if _is_public(address):
            yield Finding("cluster", "bad", PUBLIC_MESSAGE.format(address))
    if environment["RAY_AUTH_MODE"] != "token":
        yield Finding("cluster", "bad", OPEN_MESSAGE)
    if environment.get("RAY_USE_TLS") != "1":
        yield Finding("cluster", "note", PLAIN_MESSAGE)


def _is_public(address: str) -> bool:
    """Return whether the address is public.

    Return False for a host name, because its address is unknown here.
    """
    try:
        return ip_address(address).is_global
    except ValueError:
        return False
