"""Evaluation sets made for a test."""

import pytest

from evaluation.contract import SetRow
from evaluation.test_sets.services import create_set, make_version
from tests.support.factories import TaskFactory


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def make_set(task, name, size=6, **told):
    rows = [
        SetRow(f"{name}-{n}", {"premise": f"Premise {n}.", "hypothesis": "So."}, ("neutral",))
        for n in range(size)
    ]
    return make_version(create_set(task=task, name=name, actor=None, **told), rows, None)
