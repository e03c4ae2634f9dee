"""Calls of the API and what its errors say."""

import pytest
from django.utils import timezone

from evaluation.models import EvaluationSet
from evaluation.test_sets.services import make_version
from tests.support.evaluations import nli_rows
from tests.support.factories import RoundFactory, TaskFactory


def error(response):
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"code", "message", "fields"}
    return response.json()["error"]


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


def round_set(task, number, state="closed"):
    """A version of a round's set; not sealed."""
    one = EvaluationSet.objects.create(
        task=task,
        name=f"round-{number}",
        source="round",
        answers_public=True,
        round=RoundFactory(task=task, number=number, state=state),
    )
    version = make_version(one, nli_rows(), None)
    version.settled_at = timezone.now()
    version.save()
    return version
