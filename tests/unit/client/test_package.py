"""The package stands without Django, and Django without it."""

import subprocess
import sys

import pytest

import dynabench


def test_the_client_does_not_load_django():
    code = (
        "import sys; from dynabench import DynabenchClient; DynabenchClient(); print("
        "[n for n in sys.modules if n in ('django', 'tasks', 'pandas', 'datasets', 'torch')])"
    )
    assert _printed(code) == "[]"


def _printed(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_other_names_are_no_attributes():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dynabench.nothing
