"""The examples of docs/extending.md, as tests run them."""

import re
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from annotation.aids.registry import AIDS
from core.periodic import SCHEDULED_JOBS, SWEEP_JOBS, TIDYING_JOBS
from dynabench.adversaries.kinds.base import KINDS as ADVERSARY_KINDS
from dynabench.campaigns.ways.registry import WAYS
from dynabench.notices.registry import NEWS_KINDS, TASK_NOTICES
from evaluation.kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs/extending.md"
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
REGISTRIES = (
    *(ADVERSARY_KINDS, AIDS, KINDS, NEWS_KINDS, SCHEDULED_JOBS, SWEEP_JOBS, TASK_NOTICES),
    *(TIDYING_JOBS, WAYS),
)
"""Those that other modules import, so that they are restored in their place."""


def examples():
    """The Python of each section that adds something, by its title."""
    _, *parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    blocks = {}
    for part in parts:
        title = part.splitlines()[0]
        if title.startswith("Add "):
            blocks[title] = [dedent(code) for code in BLOCK.findall(part)]
    return blocks


def place_of(code):
    """Where an example's file goes, as its first line says."""
    return code.splitlines()[0].removeprefix("# ")


@contextmanager
def registered_for_now():
    """Whatever registers itself inside the block is gone after it."""
    before = [dict(registry) for registry in REGISTRIES]
    try:
        yield
    finally:
        for registry, members in zip(REGISTRIES, before, strict=True):
            registry.clear()
            registry.update(members)


@contextmanager
def example_of(title):
    """Run a section's example, and yield its names; what it registers is gone after the block."""
    code, _check = examples()[title]
    names = {"__name__": "example"}
    with registered_for_now():
        exec(compile(code, place_of(code), "exec"), names)
        yield names
