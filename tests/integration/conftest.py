"""The client as others install it: a wheel in an environment that has nothing else."""

import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from evaluation.contract import Ending, Outcome, Usage
from evaluation.submissions import intake
from tests.support.evaluations import ScriptedRunner, run_with
from tests.support.live import ROOT
from tests.support.submissions import work_off


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "pip", *build, str(ROOT / "dynabench" / "client")], check=True
    )
    (found,) = folder.glob("dynabench_client-*.whl")
    return found


@pytest.fixture(scope="session")
def python(wheel, tmp_path_factory) -> Path:
    """The Python of the environment."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *install, str(wheel)], check=True)
    return python


@pytest.fixture
def server(live_server, tmp_path, settings, monkeypatch) -> Iterator[str]:
    """Its address. What waits is checked and evaluated, and answers “neutral” to everything.

    A real queue has real models answer in test_client.py.
    """
    settings.MEDIA_ROOT = tmp_path / "media"
    usage = Usage(2.0, examples_per_second=6.0, peak_bytes=2**28, mean_bytes=2**28, answers=12)
    runner, is_over = ScriptedRunner(ending=Ending(Outcome.OK, usage)), threading.Event()
    monkeypatch.setattr(intake, "_choose_runner", lambda *_: runner)
    run_with(monkeypatch, runner)

    def work() -> None:
        while not is_over.wait(0.5):
            work_off()
        connections.close_all()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    yield live_server.url
    is_over.set()
    worker.join()
