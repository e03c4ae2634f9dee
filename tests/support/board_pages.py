"""A leaderboard's page and its people."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from evaluation.models import Submission
from tasks.models import TaskMember
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory

URL = "/t/nli/leaderboard/"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


@pytest.fixture
def models(task):
    """Model 0 to 2 on two sets: each better and more costly than the one before."""
    return fill_board(task)


def names(page):
    return re.findall(r'<a href="/m/[^"]+/">([^<]+)</a>', page)


@pytest.fixture
def secrets(task, models, alice):
    """What only some see: a private model, an anonymous one, a hidden set; all Alice's."""
    version = task.evaluation_sets.get(name="round-1").versions.get()
    other = task.evaluation_sets.get(name="round-2").versions.get()
    until = timezone.now().date() + timedelta(days=9)
    private = accepted_model(task, alice, name="Private")
    nameless = accepted_model(
        task, alice, name="Nameless", is_published=True, anonymous_until=until
    )
    for model in (private, nameless):
        for each in (version, other):
            measured(model, each, 0.7)
    sealed = set_version(task, "secret-set", access="hidden")
    for model in Submission.objects.all():
        measured(model, sealed, 0.123)
    gone = accepted_model(task, alice, name="Gone", is_published=True, withdrawn_at=timezone.now())
    measured(gone, version, 0.9)
    return private, nameless


def person(role, alice, task):
    if role == "stranger":
        return None
    if role == "alice":
        return alice
    user = UserFactory(is_superuser=role == "superuser")
    if role in ("owner", "reviewer"):
        TaskMember.objects.create(task=task, user=user, role=role)
    return user


ROLES = ["stranger", "somebody", "alice", "reviewer", "owner", "superuser"]
