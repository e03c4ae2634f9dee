"""Run model folders in a process of this machine, where there is no Docker engine.

The process runs only our harness. The submitter's only code is a chat template, which runs in
Jinja's sandbox. Weights are read as safetensors, so the limits need to bound only the resources of
a large or broken model. The process can see this machine's files and network.
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

from evaluation.contract import BeatCallback, Ending, LineCallback, Outcome, Runnable
from evaluation.isolation.sandbox.harness.arguments import build_command_line
from evaluation.isolation.sandbox.limits import PROCESS_NICE, Limits
from evaluation.isolation.sandbox.monitor import CHECK_INTERVAL_SECONDS, READ_BYTES, Monitor
from evaluation.isolation.sandbox.usage import ResourceSample

ROOT = Path(__file__).resolve().parents[3]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KILLED_SENTENCE = (
    "The process was ended from outside, perhaps because this machine ran out of memory."
)


class ProcessRunner:
    """A runner of model folders that runs our harness in a separate process."""

    name = "process"

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run a model; see `Runner.run`. Leaves no process."""
        assert model.folder, "images need the sandbox"
        monitor = Monitor(limits, take, beat, is_trusted=True)
        monitor.watches_memory = True
        lora = ""
        if model.lora:
            lora = str(model.lora.resolve())
        arguments = build_command_line(
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
            monitor.start_clock()
            monitor.take_sample = lambda: sample_process(process.pid)
            return monitor.monitor_run(lambda: _watch_process(monitor, process))


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
            _apply_limits(process.pid, limits)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _apply_limits(pid: int, limits: Limits) -> None:
    """Apply the limits to a process that has just started."""
    with suppress(ProcessLookupError):  # it ended at once
        for resource_name, limit in limits.list_process_limits().items():
            resource.prlimit(pid, resource_name, (limit, limit))
        # Never a higher priority than it has already.
        nice = max(PROCESS_NICE, os.getpriority(os.PRIO_PROCESS, pid))
        os.setpriority(os.PRIO_PROCESS, pid, nice)


def _watch_process(monitor: Monitor, process: "subprocess.Popen[bytes]") -> Ending:
    """Monitor the process until it ends; return how it ended.

    Propagates the monitor's exceptions.
    """
    _read_output(monitor, process)
    code = process.wait()
    if code == 0:  # a process that died may have died in the middle of a line
        monitor.process_last_line()
        return Ending(Outcome.OK)
    if code == -signal.SIGKILL:
        return Ending(Outcome.INFRASTRUCTURE, sentence=KILLED_SENTENCE)
    if code < 0:  # ended by a signal: use the code of shells and containers
        code = 128 - code
    return monitor.build_failed_ending(code)


def _read_output(monitor: Monitor, process: "subprocess.Popen[bytes]") -> None:
    """Process the output until both streams are closed."""
    with selectors.DefaultSelector() as streams:
        for stream in (process.stdout, process.stderr):
            assert stream
            streams.register(stream, selectors.EVENT_READ)
        while streams.get_map():
            monitor.check_limits()
            for key, _ in streams.select(CHECK_INTERVAL_SECONDS):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    streams.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    monitor.tail.add(data)
                else:
                    monitor.process_output(data)


def sample_process(pid: int) -> ResourceSample | None:
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
    return ResourceSample((int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND, kilobytes * 1024)
