"""The examples of docs/extending.md run as they stand there."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from evaluation.scoring.metrics import base
from tasks.config import components, schema

PAGE = Path(__file__).parents[2] / "docs/extending.md"
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def sections():
    """Yield the Python of each section that adds something, in order, by its title."""
    _, *parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    for part in parts:
        title = part.splitlines()[0]
        if not title.startswith("Add "):
            continue
        yield pytest.param([dedent(code) for code in BLOCK.findall(part)], id=title)


@pytest.fixture(autouse=True)
def _nothing_stays_registered(monkeypatch):
    monkeypatch.setattr(base, "METRICS", dict(base.METRICS))
    monkeypatch.setattr(schema, "METRICS", list(schema.METRICS))
    monkeypatch.setattr(components, "FIELD_TYPES", dict(components.FIELD_TYPES))


@pytest.mark.parametrize("blocks", sections())
def test_the_example_and_its_check_run(blocks):
    assert len(blocks) == 2
    names = {"__name__": "example"}
    for code in blocks:
        place = code.splitlines()[0].removeprefix("# ")
        exec(compile(code, place, "exec"), names)
    example = blocks[0].splitlines()[0].removeprefix("# ")
    assert (PAGE.parents[1] / example).parent.is_dir()
