"""Runs model folders in a process of this machine, where no Docker engine is.

Only our harness runs and no code of the submitter's: weights are read as safetensors, so what is to
be bounded is what a large or broken model uses. It sees this machine's files and network.
"""

import math
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evaluation.contract import GIB, Beat, Ending, InvalidOutput, Limits, Outcome, Runnable, Take
from evaluation.sandbox.harness.arguments import written
from evaluation.sandbox.monitor import LOOK_SECONDS, READ_BYTES, End, Watched
from evaluation.sandbox.output import OutputTooLargeError
from evaluation.sandbox.usage import Sample

ROOT = Path(__file__).resolve().parents[2]
NICE = 10  # the site on the same machine goes first
SLACK_BYTES = 4 * GIB  # of address space that libraries and threads reserve and never use
TICKS = os.sysconf("SC_CLK_TCK")
KILLED = "The process was ended from outside, perhaps because this machine ran out of memory."


class ProcessRunner:
    """Our harness in a process of its own, for folders only."""

    name = "process"

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `evaluation.contract.Runner`. No process is left."""
        assert model.folder, "images need the sandbox"
        run = Watched(limits, take, beat, trusted=True)
        arguments = written(
            model,
            folder=str(model.folder.resolve()),
            inputs=str(inputs.resolve()),
            threads=math.ceil(limits.cpus),
        )
        with tempfile.TemporaryDirectory() as home, _started(arguments, home, limits) as process:
            run.started()
            run.sample = lambda: sample(process.pid)
            return run.ending(_watch(run, process))


@contextmanager
def _started(
    arguments: list[str], home: str, limits: Limits
) -> Iterator["subprocess.Popen[bytes]"]:
    """The harness under its limits; at the end of the block it is gone."""
    with subprocess.Popen(
        [sys.executable, "-m", "evaluation.sandbox.harness", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env={
            "HOME": home,
            "TMPDIR": home,
            "HF_HUB_OFFLINE": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        start_new_session=True,
    ) as process:
        try:
            _limit(process.pid, limits)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _limit(pid: int, limits: Limits) -> None:
    """Bound a process that has just begun; `sample` sees earlier that memory runs short."""
    most = {
        resource.RLIMIT_AS: limits.memory_bytes + SLACK_BYTES,
        resource.RLIMIT_FSIZE: limits.scratch_bytes,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_CORE: 0,
    }
    with suppress(ProcessLookupError):  # it ended at once
        for what, value in most.items():
            resource.prlimit(pid, what, (value, value))
        os.setpriority(os.PRIO_PROCESS, pid, NICE)


def _watch(run: Watched, process: "subprocess.Popen[bytes]") -> End:
    """See the process to its end. Raises what `beat` does."""
    try:
        if end := _read(run, process):
            return end
        code = process.wait()
        if code == 0:  # what died may have died in the middle of a line
            run.closed()
    except InvalidOutput as problem:
        return End(Outcome.INVALID_OUTPUT, str(problem))
    except OutputTooLargeError:
        return run.too_large()
    if code == -signal.SIGKILL:
        return End(Outcome.INFRASTRUCTURE, KILLED)
    return run.failed(code if code > 0 else 128 - code) if code else End(Outcome.OK)


def _read(run: Watched, process: "subprocess.Popen[bytes]") -> End | None:
    """Take what it writes until it closes both streams; how it ended, when we end it."""
    with selectors.DefaultSelector() as streams:
        for stream in (process.stdout, process.stderr):
            assert stream
            streams.register(stream, selectors.EVENT_READ)
        while streams.get_map():
            run.look()
            if run.pace.now and run.pace.now.memory_bytes > run.limits.memory_bytes:
                return run.oom()
            if run.is_over():
                return run.timeout()
            for key, _ in streams.select(LOOK_SECONDS):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    streams.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    run.tail.add(data)
                else:
                    run.wrote(data)
    return None


def sample(pid: int) -> Sample | None:
    """What a process used so far and holds now; None when it is gone.

    Of pages that it shares, such as those of libraries, it is told its part. The harness starts no
    further processes.
    """
    proc = Path("/proc", str(pid))
    try:
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        sizes = (proc / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    kilobytes = sum(int(line.split()[1]) for line in sizes if line.startswith("Pss:"))
    return Sample((int(fields[11]) + int(fields[12])) / TICKS, kilobytes * 1024)
