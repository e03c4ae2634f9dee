"""The documented program in a container, in the documented dialogue with the site."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynabench.adversaries.models import BUDGET_FIELDS

DOCS = Path(__file__).parents[3] / "docs" / "adversaries.md"
SECTION = DOCS.read_text().partition("### Container")[2]


def read_block(language: str) -> str:
    """The first block of code in this language."""
    return re.search(f"```{language}\n(.*?)```", SECTION, re.DOTALL)[1]


@pytest.fixture
def dialogue() -> list[dict]:
    return [json.loads(line) for line in read_block("json").splitlines()]


def test_the_program_answers_each_line_and_ends():
    command = [sys.executable, "-c", read_block("python")]
    done = subprocess.run(command, input=read_block("json"), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    questions = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for one in questions for name in one] == ["ask", "propose"] * 2


def test_the_run_has_the_keys_that_the_site_sends(dialogue):
    (description,) = dialogue[0].values()
    named_keys = {"number", "round", "seed", "labels", "language", "contexts"}
    assert set(description) == named_keys | set(BUDGET_FIELDS)


def test_the_replies_have_the_keys_that_the_site_sends(dialogue):
    for reply in dialogue[1:]:
        assert set(reply) == {"answer", "run"}
        assert set(reply["answer"]) == {"state", "reason", "is_fooled", "chance", "outputs"}
        assert set(reply["run"]) == {"calls", "examples", "tokens", "cost", "seconds"}
