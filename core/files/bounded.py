"""Run checks of untrusted data in separate processes with limits on memory and time.

If a file crashes a parser, only that process ends, and no web process or worker. This limits a
check but is no sandbox: our own code runs there as the same user, but without the secrets of our
environment.
"""

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import Any, TypeVar

from core.errors import Unavailable
from core.text.words import gettext_noop

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
BEAT_SECONDS = 1.0
MAX_CHECKS_AT_ONCE = 2  # checks that one process of ours has under way
SLOT_WAIT_SECONDS = 10.0
SLOTS = BoundedSemaphore(MAX_CHECKS_AT_ONCE)
MIB = 2**20

TOO_LONG_MESSAGE = gettext_noop("The check took too long and was stopped. Send a smaller file.")
TOO_LARGE_MESSAGE = gettext_noop(
    "The check needed too much memory and was stopped. Send a smaller or simpler file."
)
TOO_DEEP_MESSAGE = gettext_noop("The content is nested too deeply. Use fewer levels.")
BROKEN_MESSAGE = gettext_noop(
    "We couldn't read this file, which may be damaged. Create the file again."
)
BUSY_MESSAGE = gettext_noop("We're checking many files right now. Try again in a minute.")


@dataclass(frozen=True)
class Bounds:
    """The limits of a check.

    seconds: wall-clock time. memory_bytes: memory in addition to Python's own.
    """

    seconds: float = 60.0
    memory_bytes: int = 512 * MIB


class OutOfBounds(Exception):
    """Raised if a check exceeds its limits or crashes. The sender must fix the data."""


def do_nothing() -> None:
    """Do nothing. The default heartbeat of `run_bounded`."""


def run_bounded(
    check: Callable[[], T], bounds: Bounds = Bounds(), beat: Callable[[], object] = do_nothing
) -> T:
    """Run a check in a process with limits; return its result or raise its exception.

    check: a `functools.partial` of a top-level function of a module without Django. The partial and
    its result must be picklable. Keep the result small, because it takes memory here, too. beat:
    called each second while the check runs. Raises OutOfBounds, Unavailable if too many checks are
    running, and the exceptions of `beat`. The process always ends before the call returns.
    """
    if not SLOTS.acquire(timeout=SLOT_WAIT_SECONDS):
        raise Unavailable(BUSY_MESSAGE, wait=60)
    try:
        exit_code, output = _run_in_process(pickle.dumps((check, bounds)), bounds.seconds, beat)
    finally:
        SLOTS.release()
    # 1. It took too long: by our clock, or by its own of processor time.
    if exit_code in (None, -signal.SIGXCPU):
        raise OutOfBounds(TOO_LONG_MESSAGE)
    assert exit_code is not None
    # 2. It broke on what was sent.
    # Ended by a signal: memory that C code did not get, or the kernel's last resort.
    if exit_code < 0:
        raise OutOfBounds(BROKEN_MESSAGE)
    # 3. It ended outside `_pickle_check`, which catches what a check raises: a bug of ours.
    if exit_code > 0:
        raise RuntimeError(f"The process of the check {check} ended with {exit_code}.")
    has_succeeded, value = pickle.loads(output)  # noqa: S301 (what our own code wrote)
    if has_succeeded:
        return value  # type: ignore[no-any-return]
    raise value


def _run_in_process(
    job: bytes, seconds: float, beat: Callable[[], object]
) -> tuple[int | None, bytes]:
    """Run a check in a separate process; return its exit code and output.

    job: the pickled check and bounds. The exit code is None after a timeout.
    """
    deadline = time.monotonic() + seconds
    with TemporaryFile() as job_file:  # `communicate` may forget what it was sending at a timeout
        job_file.write(job)
        job_file.seek(0)
        with subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import run_received_check as run; run()"],
            stdin=job_file,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=_build_environment(),
        ) as process:
            try:
                while True:
                    try:
                        output, _ = process.communicate(timeout=BEAT_SECONDS)
                        return process.returncode, output
                    except subprocess.TimeoutExpired:
                        if time.monotonic() > deadline:
                            return None, b""
                        beat()
            finally:
                # Also when `beat` raised: leaving the `with` would wait for a check that hangs.
                process.kill()


def _build_environment() -> dict[str, str]:
    """Return environment variables without secrets. They limit libraries to one thread."""
    names = ("PATH", "TMPDIR", "HOME", "SSL_CERT_FILE")
    variables = {name: os.environ[name] for name in names if name in os.environ}
    return {
        **variables,
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Arenas and threads reserve address space, all of which RLIMIT_AS counts.
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }


# In the process.


def run_received_check() -> None:
    """Run the check read from standard input, and write its pickled result to standard output."""
    # Kept under another number, before 1 is turned to standard error.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    check, bounds = pickle.load(sys.stdin.buffer)  # noqa: S301 (our parent wrote it)
    _set_limits(bounds)
    output.write(_pickle_check(check))
    output.close()


def _set_limits(bounds: Bounds) -> None:
    # RLIMIT_AS also counts what Python has mapped by now, so the bound comes on top of it.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory_bytes = pages * resource.getpagesize() + bounds.memory_bytes
    cpu_seconds = ceil(bounds.seconds) + 1  # in case nobody is left to end it
    # No core: it would leave what strangers sent on the disk.
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
    }
    for resource_kind, limit in limits.items():
        # The hard limit too, so that the process cannot raise the soft one again.
        resource.setrlimit(resource_kind, (limit, limit))


def _pickle_check(check: Callable[[], Any]) -> bytes:
    """Run a check; return a pickled pair: whether it succeeded, and its result or exception."""
    try:
        return pickle.dumps((True, check()))
    except MemoryError:
        outcome: BaseException = OutOfBounds(TOO_LARGE_MESSAGE)
    except RecursionError:
        outcome = OutOfBounds(TOO_DEEP_MESSAGE)
    except Exception as error:
        # A traceback cannot be pickled, so it travels as a note.
        error.add_note(traceback.format_exc())
        error.__cause__ = error.__context__ = None
        outcome = error
    return pickle.dumps((False, outcome))
