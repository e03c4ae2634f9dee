"""A process of this machine for model folders, where there is no Docker engine.

Only our harness runs and no code of the submitter's but a chat template, in Jinja's sandbox:
weights are read as safetensors, so the use of a large or broken model is to be bounded. It sees
this machine's files and network.
"""

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

from evaluation.contract import Beat, Ending, Outcome, Runnable, Take
from evaluation.isolation.sandbox.harness.arguments import command_line
from evaluation.isolation.sandbox.limits import PROCESS_NICE, Limits
from evaluation.isolation.sandbox.monitor import LOOK_SECONDS, READ_BYTES, Monitor
from evaluation.isolation.sandbox.usage import Sample

ROOT = Path(__file__).resolve().parents[3]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KILLED_SENTENCE = (
    "The process was ended from outside, perhaps because this machine ran out of memory."
)


class ProcessRunner:
    """A runner of model folders that runs our harness in a separate process."""

    name = "process"

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run a model as `Runner.run` does. Leaves no process."""
        assert model.folder, "images need the sandbox"
        monitor = Monitor(limits, take, beat, trusted=True)
        monitor.watches_memory = True
        lora = ""
        if model.lora:
            lora = str(model.lora.resolve())
        arguments = command_line(
            model,
            folder=str(model.folder.resolve()),
            inputs=str(inputs.resolve()),
            threads=limits.threads,
            lora=lora,
        )
        with (
            tempfile.TemporaryDirectory() as home,
            _start_harness(arguments, home, limits) as process,
        ):
            monitor.started()
            monitor.sample = lambda: sample_process(process.pid)
            return monitor.ending(lambda: _watch(monitor, process))


@contextmanager
def _start_harness(
    arguments: list[str], home: str, limits: Limits
) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield the harness's process, which runs under the limits.

    Kills it at the end of the block.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "evaluation.isolation.sandbox.harness", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env={
            "HOME": home,
            "TMPDIR": home,
            "HF_HUB_OFFLINE": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),  # nothing else of this process's environment, such as secrets
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        start_new_session=True,  # so that its children can be killed with it
    ) as process:
        try:
            _limit(process.pid, limits)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _limit(pid: int, limits: Limits) -> None:
    """Apply the limits to a process that has just started."""
    with suppress(ProcessLookupError):  # it ended at once
        for what, most in limits.of_process().items():
            resource.prlimit(pid, what, (most, most))
        nice = max(PROCESS_NICE, os.getpriority(os.PRIO_PROCESS, pid))  # nobody may get ahead again
        os.setpriority(os.PRIO_PROCESS, pid, nice)


def _watch(monitor: Monitor, process: "subprocess.Popen[bytes]") -> Ending:
    """Monitor the process until it ends; return how it ended.

    Propagates the monitor's exceptions.
    """
    _read(monitor, process)
    code = process.wait()
    if code == 0:  # what died may have died in the middle of a line
        monitor.closed()
        return Ending(Outcome.OK)
    if code == -signal.SIGKILL:
        return Ending(Outcome.INFRASTRUCTURE, sentence=KILLED_SENTENCE)
    if code < 0:  # ended by a signal: as a shell and containers report it
        code = 128 - code
    return monitor.failed(code)


def _read(monitor: Monitor, process: "subprocess.Popen[bytes]") -> None:
    """Process the output until both streams are closed."""
    with selectors.DefaultSelector() as streams:
        for stream in (process.stdout, process.stderr):
            assert stream
            streams.register(stream, selectors.EVENT_READ)
        while streams.get_map():
            monitor.look()
            for key, _ in streams.select(LOOK_SECONDS):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    streams.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    monitor.tail.add(data)
                else:
                    monitor.wrote(data)


def sample_process(pid: int) -> Sample | None:
    """Return the resources used by a process; None if it has ended.

    Shared pages, such as those of libraries, count proportionally (Pss). The harness starts no
    further processes.
    """
    proc = Path("/proc", str(pid))
    try:
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        sizes = (proc / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    kilobytes = sum(int(line.split()[1]) for line in sizes if line.startswith("Pss:"))
    return Sample((int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND, kilobytes * 1024)
