"""The client as others install it: a wheel in an environment that has nothing else."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.live import ROOT


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
