"""Versions of a metric that are proposed, approved and scored at the same instant."""

import pytest

from core.errors import Refused
from evaluation.judges.custom_metrics.services import decide_metric, propose_metric
from evaluation.models import CustomMetric
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def propose(task, actor, source):
    fields = {"name": "safe", "about": "Safe.", "higher_is_better": True}
    return propose_metric(task=task, actor=actor, source=source, **fields)


def test_of_two_versions_one_is_approved(at_once):
    task, boss = TaskFactory(code="nli"), UserFactory(is_superuser=True)
    versions = [propose(task, boss, f"# {n}") for n in range(4)]
    tried = {"review": "proposed", "state": "done", "trial": {"failure": ""}}
    CustomMetric.objects.update(**tried)

    def approve(metric):
        try:
            decide_metric(metric=metric, actor=boss, approve=True, reason="")
        except Refused as refused:
            return refused.code
        return "approved"

    said = at_once(approve, versions)
    assert "approved" in said
    assert CustomMetric.objects.filter(review="approved").count() == 1
    assert CustomMetric.objects.filter(review="retired").count() == said.count("approved") - 1


def test_versions_that_are_proposed_at_once_have_numbers_without_doubles(at_once):
    task, owner = TaskFactory(code="nli"), UserFactory()

    def try_to(number):
        try:
            return propose(task, owner, f"# {number}").number
        except Refused:
            return 0

    numbers = [number for number in at_once(try_to, range(6)) if number]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert numbers
