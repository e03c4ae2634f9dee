"""Supervise processes: restart one that ends, and kill one that stops reporting.

The processes share no lock and no pipe, so that killing one at any moment does not harm the others.
A process whose supervisor was killed ends by itself.
"""

import logging
import mmap
import multiprocessing
import os
import signal
import struct
import time
from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)

FORK_CONTEXT = multiprocessing.get_context("fork")
CHECK_INTERVAL_SECONDS = 0.5
MAX_IDLE_SECONDS = 30.0  # that a process may be silent while it waits; SQLite makes one wait for 20
MAX_WORK_SECONDS = 600.0  # and while it does a job

_is_ending = False  # this process was asked to end
# A time: until then the silence of this process means no harm.
_shared_deadline: mmap.mmap | None = None
_supervisor_pid = 0


class SupervisedProcess:
    """A process that runs `work`. It starts at once, and `restart_if_needed` restarts it."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name, self._work = name, work
        # Shared with the process after the fork. Without a lock, a process killed here blocks
        # nobody.
        self._shared_deadline = mmap.mmap(-1, 8)
        self.start()

    def start(self) -> None:
        # Before the fork: a process that hangs on its way up is killed, too.
        _write_deadline(self._shared_deadline, MAX_IDLE_SECONDS)
        self._process = FORK_CONTEXT.Process(target=self._run, args=[os.getpid()], name=self._name)
        try:
            self._process.start()
        except OSError as error:  # no memory just now; the next check tries again
            logger.error("%s cannot be started: %s", self._name, error)

    def _run(self, supervisor_pid: int) -> None:
        global _shared_deadline, _supervisor_pid
        _shared_deadline, _supervisor_pid = self._shared_deadline, supervisor_pid
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C: the keeper asks
        logger.info("%s ready for work at %s", self._name, os.getpid())
        self._work()

    def restart_if_needed(self) -> None:
        """Restart the process if it has ended, after killing it if it was silent for too long."""
        if self._process.is_alive() and time.monotonic() > _read_deadline(self._shared_deadline):
            logger.error("%s hangs and is killed", self._name)
            self.kill()
        if not self._process.is_alive():
            if self._process.exitcode:
                logger.error("%s ended with %s", self._name, self._process.exitcode)
            self.start()

    def request_end(self) -> None:
        if not self.has_ended():
            self._process.terminate()

    def has_ended(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        if not self.has_ended():
            self._process.kill()
            self._process.join()


def supervise_processes(
    work_by_name: Mapping[str, Callable[[], None]], grace_seconds: float
) -> None:
    """Run each function in a separate process until SIGTERM or SIGINT.

    Processes may then finish their work. After `grace_seconds` they are killed.
    """
    # Before the forks, so that the processes have the handlers, too.
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, _request_end)
    processes = [SupervisedProcess(name, work) for name, work in work_by_name.items()]
    while not _is_ending:
        for process in processes:
            process.restart_if_needed()
        time.sleep(CHECK_INTERVAL_SECONDS)
    for process in processes:
        process.request_end()
    deadline = time.monotonic() + grace_seconds
    while time.monotonic() < deadline and not all(process.has_ended() for process in processes):
        time.sleep(0.1)
    for process in processes:
        process.kill()


def _request_end(signal_number: int, frame: object) -> None:
    global _is_ending
    _is_ending = True


def must_end() -> bool:
    """Return whether this process was asked to end, or its supervisor has died."""
    # A process whose parent ended gets another one at once.
    return _is_ending or (_supervisor_pid != 0 and os.getppid() != _supervisor_pid)


def pause(seconds: float) -> bool:
    """Sleep, while telling the supervisor that this process is alive.

    Returns True after `seconds`, or False as soon as this process must end.
    """
    deadline = time.monotonic() + seconds
    while not must_end() and (remaining_seconds := deadline - time.monotonic()) > 0:
        _extend_deadline(MAX_IDLE_SECONDS)
        # In short steps: a signal ends no sleep (PEP 475), and the keeper must hear from us.
        time.sleep(min(remaining_seconds, 1.0))
    return not must_end()


def announce_job() -> None:
    """Tell the supervisor that this process runs a job, so that it may be silent for longer.

    A long job must call this repeatedly, otherwise its process is killed. Without a supervisor this
    does nothing.
    """
    _extend_deadline(MAX_WORK_SECONDS)


def _extend_deadline(silent_seconds: float) -> None:
    if _shared_deadline is not None:
        _write_deadline(_shared_deadline, silent_seconds)


def _write_deadline(deadline_memory: mmap.mmap, seconds: float) -> None:
    # This clock is the same in all processes of a machine, and nobody sets it back.
    deadline_memory[:] = struct.pack("d", time.monotonic() + seconds)


def _read_deadline(deadline_memory: mmap.mmap) -> float:
    (deadline,) = struct.unpack("d", deadline_memory[:])
    return float(deadline)
