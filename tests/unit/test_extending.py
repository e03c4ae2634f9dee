"""The examples of docs/extending.md run as they stand there."""

import pytest

from evaluation.scoring.metrics import base
from tasks.config import components, schema
from tests.support.guide import PAGE, examples, place_of, registered_for_now


@pytest.fixture(autouse=True)
def _nothing_stays_registered(monkeypatch):
    monkeypatch.setattr(base, "METRICS", dict(base.METRICS))
    monkeypatch.setattr(schema, "METRIC_NAMES", list(schema.METRIC_NAMES))
    monkeypatch.setattr(schema, "ERROR_METRICS", list(schema.ERROR_METRICS))
    monkeypatch.setattr(components, "FIELD_TYPES", dict(components.FIELD_TYPES))


@pytest.mark.parametrize("title", examples())
def test_the_example_and_its_check_run(title):
    blocks = examples()[title]
    assert len(blocks) == 2
    names = {"__name__": "example"}
    with registered_for_now():
        for code in blocks:
            exec(compile(code, place_of(code), "exec"), names)
    assert (PAGE.parents[1] / place_of(blocks[0])).parent.is_dir()
