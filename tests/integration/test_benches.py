"""Every program of `bench/` runs in its smoke form, and prints what `bench.check` compares."""

import json
import math
import os
import subprocess
import sys

import pytest

from bench.smoke import NO_PROGRAMS, list_programs
from tests.support.programs import ROOT

pytestmark = pytest.mark.nightly("benches")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What each program printed, all run from one process."""
    env = {**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("tmp"))}
    command = [sys.executable, "-m", "bench.smoke"]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("program", list_programs())
def test_a_program_runs_and_says_which_way_its_ratios_are_better(program, runs):
    run = runs[program]
    assert run["exit"] == 0, run["said"]
    found = json.loads(run["printed"])
    assert found["ratios"]
    assert all(math.isfinite(value) for value in found["ratios"].values())
    assert found["better"].keys() == found["ratios"].keys()
    assert {*found["better"].values()} <= {"higher", "lower"}
    assert found["machine"].keys() >= {"cpu", "cores", "load_average"}
    assert found["versions"]["python"]


def test_parts_are_still_there():
    assert all((ROOT / "bench" / f"{part}.py").exists() for part in NO_PROGRAMS)
