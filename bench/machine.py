"""Where and with what something was measured."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def describe_machine() -> dict[str, Any]:
    """The processor, how many cores of it may be used, the system and how busy it is."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return {
        "cpu": cpu[0].partition(": ")[2] if cpu else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
    }


def list_versions(*packages: str) -> dict[str, str | None]:
    """Of Python and of these packages; None: not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
