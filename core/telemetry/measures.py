"""Counts that the processes of one web server keep together, for whichever of them is asked.

prometheus_client keeps them in files of a folder, one set a process, if a variable names it before
its first import (https://prometheus.github.io/client_python/multiprocess/).
"""

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def count_together(home: Path) -> None:
    """Share counters in a folder of this server's main process; delete those of ended servers.

    For a gunicorn worker, before prometheus_client is imported. Counts begin at 0 with each main
    process. If the environment names a folder, it is created, and the operator has to empty it.
    """
    if named := os.environ.get(FOLDER):
        Path(named).mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    host_prefix = f"{socket.gethostname()}-"
    # Folders of other hosts on a shared disk stay: their process ids mean nothing here.
    for folder in home.glob(f"{host_prefix}*"):
        if not _lives(folder.name.removeprefix(host_prefix)):
            shutil.rmtree(folder, ignore_errors=True)
    # The main process: workers come and go below it, and their counts stay.
    folder = home / f"{host_prefix}{os.getppid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ[FOLDER] = str(folder)


def forget_the_dead(folder: Path) -> None:
    """Delete the live gauges of workers that ended. Their counters are kept."""
    for file in folder.glob("gauge_live*_*.db"):
        if not _lives(file.stem.rpartition("_")[2]):
            with suppress(FileNotFoundError):  # another scrape was first
                file.unlink()


def _lives(pid: str) -> bool:
    """Return whether this machine has a process with this id."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    # A process of another user.
    except PermissionError:
        return True
    return True
