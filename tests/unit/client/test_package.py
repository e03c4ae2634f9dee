"""The package stands without Django, and Django without it."""

import inspect
import subprocess
import sys
from typing import get_origin, get_type_hints

import pytest

import dynabench
from dynabench.client.flow import Flow


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


@pytest.mark.parametrize("client", [dynabench.DynabenchClient, dynabench.AsyncDynabenchClient])
def test_help_shows_what_a_method_takes_and_gives(client):
    seen = inspect.signature(client.submit_model)
    assert [*seen.parameters][:3] == ["self", "model_path", "task"]
    assert seen.return_annotation is str
    bound = inspect.signature(client("key", "http://dynabench.test").submit_model)
    assert [*bound.parameters][:2] == ["model_path", "task"]
    for name, one in inspect.getmembers(client, inspect.isroutine):
        if not name.startswith("_") and one.__doc__ and name not in ("run", "close", "aclose"):
            assert get_origin(get_type_hints(one).get("return")) is not get_origin(Flow), name
