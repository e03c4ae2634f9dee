"""Checks of what strangers made, each in a separate process with limits of memory and time.

What a file makes of a parser then ends that process, and no web process and no worker with it. This
bounds a check and is no sandbox: our own code runs there, as the same user, but without the
secrets of our environment.
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
AT_ONCE = 2  # checks that one process of ours has under way
PLACE_SECONDS = 10.0
PLACES = BoundedSemaphore(AT_ONCE)
MIB = 2**20

TOO_LONG = gettext_noop("The check took too long and was stopped. Send something smaller.")
TOO_LARGE = gettext_noop(
    "The check needed too much memory and was stopped. Send something smaller or simpler."
)
TOO_DEEP = gettext_noop("Something in it nests too deeply. Nest less deeply.")
BROKEN = gettext_noop(
    "The check broke off while it read this, which is most likely damaged. Make it again."
)
BUSY = gettext_noop("Many files are being checked. Try again in a minute.")


@dataclass(frozen=True)
class Bounds:
    """The limits of a check: seconds of wall-clock time, and bytes beyond Python's own memory."""

    seconds: float = 60.0
    memory_bytes: int = 512 * MIB


class OutOfBounds(Exception):
    """Raised if a check of untrusted data exceeds the limits or crashes. The sender must fix it."""


def nothing() -> None:
    """Do nothing, as a heartbeat for callers that need none."""


def bounded(
    check: Callable[[], T], bounds: Bounds = Bounds(), beat: Callable[[], object] = nothing
) -> T:
    """Run a check in a process with limits; return its result or raise its exception.

    check: a `functools.partial` of a top-level function of a module without Django, because it is
    pickled, as its result is. The result takes as much memory here, so its size is limited, too.
    beat: called each second while the check runs. Raises OutOfBounds, Unavailable if too many
    checks are running, and what `beat` raises. The process never outlives the call.
    """
    if not PLACES.acquire(timeout=PLACE_SECONDS):
        raise Unavailable(BUSY, wait=60)
    try:
        code, output = _run(pickle.dumps((check, bounds)), bounds.seconds, beat)
    finally:
        PLACES.release()
    # 1. It took too long: by our clock, or by its own of processor time.
    if code in (None, -signal.SIGXCPU):
        raise OutOfBounds(TOO_LONG)
    assert code is not None
    # 2. It broke on what was sent.
    if code < 0:  # ended by a signal: memory that C code did not get, or the kernel's last resort
        raise OutOfBounds(BROKEN)
    # 3. It ended outside `_pickled`, which catches what a check raises: a bug of ours.
    if code > 0:
        raise RuntimeError(f"The process of the check {check} ended with {code}.")
    is_good, value = pickle.loads(output)  # noqa: S301 (what our own code wrote)
    if is_good:
        return value  # type: ignore[no-any-return]
    raise value


def _run(job: bytes, seconds: float, beat: Callable[[], object]) -> tuple[int | None, bytes]:
    """Run a check in a process of its own; return its exit code and output.

    The exit code is None after a timeout.
    """
    deadline = time.monotonic() + seconds
    with TemporaryFile() as to_read:  # `communicate` may forget what it was sending at a timeout
        to_read.write(job)
        to_read.seek(0)
        with subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import answer; answer()"],
            stdin=to_read,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=_environment(),
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


def _environment() -> dict[str, str]:
    """Return environment variables without secrets that limit libraries to one thread and arena."""
    names = ("PATH", "TMPDIR", "HOME", "SSL_CERT_FILE")
    variables = {name: os.environ[name] for name in names if name in os.environ}
    return {
        **variables,
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }


# In the process.


def answer() -> None:
    """Run the check on standard input, and write its pickled result to standard output."""
    # Kept under another number, before 1 is turned to standard error.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    check, bounds = pickle.load(sys.stdin.buffer)  # noqa: S301 (our parent wrote it)
    _limit(bounds)
    output.write(_pickled(check))
    output.close()


def _limit(bounds: Bounds) -> None:
    # RLIMIT_AS also counts what Python has mapped by now, so the bound comes on top of it.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + bounds.memory_bytes
    cpu = ceil(bounds.seconds) + 1  # in case nobody is left to end it
    # No core: it would leave what strangers sent on the disk.
    limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: cpu, resource.RLIMIT_CORE: 0}
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))


def _pickled(check: Callable[[], Any]) -> bytes:
    """Return, pickled, whether the check succeeded, and its result or exception."""
    try:
        return pickle.dumps((True, check()))
    except MemoryError:
        outcome: BaseException = OutOfBounds(TOO_LARGE)
    except RecursionError:
        outcome = OutOfBounds(TOO_DEEP)
    except Exception as error:
        # A traceback cannot be pickled, so it travels as a note.
        error.add_note(traceback.format_exc())
        error.__cause__ = error.__context__ = None
        outcome = error
    return pickle.dumps((False, outcome))
