"""Share counters among the processes of a web server, so that any of them can report the totals.

prometheus_client keeps them in a folder, with files for each process, if a variable names the
folder before its first import (https://prometheus.github.io/client_python/multiprocess/).
"""

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def set_up_shared_counters(home: Path) -> None:
    """Set up the folder in which this server's workers share counters.

    Deletes the folders of servers that have stopped. Call it in each gunicorn worker before
    importing prometheus_client. Counts restart at 0 with each main process. A folder set in the
    environment is created if missing and never emptied; that is up to the operator.
    """
    if folder_path := os.environ.get(FOLDER_VARIABLE):
        Path(folder_path).mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    host_prefix = f"{socket.gethostname()}-"
    # Folders of other hosts on a shared disk stay: their process ids mean nothing here.
    for folder in home.glob(f"{host_prefix}*"):
        if not _is_process_alive(folder.name.removeprefix(host_prefix)):
            shutil.rmtree(folder, ignore_errors=True)
    # The main process: workers come and go below it, and their counts stay.
    folder = home / f"{host_prefix}{os.getppid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ[FOLDER_VARIABLE] = str(folder)


def delete_dead_gauges(folder: Path) -> None:
    """Delete the live gauges of workers that have ended. Their counters are kept."""
    for file in folder.glob("gauge_live*_*.db"):
        if not _is_process_alive(file.stem.rpartition("_")[2]):
            with suppress(FileNotFoundError):  # another scrape was first
                file.unlink()


def _is_process_alive(pid: str) -> bool:
    """Return whether this machine has a process with this id."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    # A process of another user.
    except PermissionError:
        return True
    return True
