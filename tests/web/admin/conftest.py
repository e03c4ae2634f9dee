"""People with and without a role, and rows of their own and of others' tasks."""

import os

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Example, Report
from core.accounts.services import get_annotator
from tasks.contexts import uploads
from tasks.models import ContextBatch, Generator, Task, TaskMember
from tasks.permissions import EDITORS, OWNERS, READERS, REVIEWERS
from tests.support.adversaries import make_adversary
from tests.support.campaigns import open_campaign
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from validation.models import Consensus, OwnerDecision, Validation

Role = TaskMember.Role
ROLES = [role for role in Role if role in READERS]  # the others: test_blind.py
SECRET_TEXT = "Nobody of the other task may read this."
MODELS = [
    *("tasks_task", "tasks_round", "tasks_context", "tasks_contextbatch", "tasks_targetmodel"),
    *("tasks_generator", "annotation_example", "annotation_report"),
    *("validation_validation", "validation_consensus", "validation_ownerdecision"),
    *("campaigns_campaign", "adversaries_adversary"),
]
SEEN_BY = {
    "tasks_contextbatch": EDITORS,
    "validation_ownerdecision": REVIEWERS,
    "tasks_targetmodel": REVIEWERS,
    "tasks_generator": EDITORS,
    "annotation_report": REVIEWERS,
    "campaigns_campaign": OWNERS,
    "adversaries_adversary": EDITORS,
}
"""The rest by all members who read."""


def sees(role, model):
    return role in SEEN_BY.get(model, READERS)


@pytest.fixture(autouse=True)
def _uploads(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")


def sign_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def people(nli):
    """One member of the NLI task for each role."""
    found = {}
    for role in ROLES:
        found[role] = UserFactory(email=f"{role}@example.com")
        TaskMember.objects.create(task=nli.task, user=found[role], role=role)
    return found


@pytest.fixture
def owner(people):
    return sign_in(people[Role.OWNER])


@pytest.fixture
def editor(people):
    return sign_in(people[Role.EDITOR])


@pytest.fixture
def boss(db):
    return sign_in(UserFactory(email="boss@example.com", is_superuser=True))


def example_of(context, person, **inputs):
    return Example.objects.create(
        round=context.round,
        context=context,
        annotator=get_annotator(person),
        inputs=inputs,
        digest=os.urandom(8).hex(),
        outcome="fooled",
    )


def fill(round, person):
    """One row of each model below a round."""
    context = ContextFactory(round=round, fields={"premise": SECRET_TEXT}, tag="hidden")
    batch = ContextBatch.objects.create(round=round, file_name="hidden.jsonl", imported_by=person)
    report = Report.objects.create(
        annotator=get_annotator(person), context=context, reason="broken"
    )
    example = example_of(context, person, hypothesis=SECRET_TEXT, label="neutral")
    about = {"example": example, "label": "neutral"}
    rows = {
        "tasks_task": round.task,
        "tasks_round": round,
        "tasks_context": context,
        "tasks_contextbatch": batch,
        "tasks_targetmodel": scripted_target(round, name=f"target-{round.pk}", label="neutral"),
        "tasks_generator": Generator.objects.get_or_create(
            task=round.task, name="muse", adapter="scripted", url="http://muse.test"
        )[0],
        "annotation_example": example,
        "validation_validation": Validation.objects.create(**about, seconds=1),
        "validation_consensus": Consensus.objects.create(
            **about, round=round, state="decided", votes=1, still_needed=0
        ),
        "validation_ownerdecision": OwnerDecision.objects.create(**about, owner=person),
        "annotation_report": report,
        "campaigns_campaign": open_campaign(round.task, slug=f"study-{round.pk}"),
        "adversaries_adversary": make_adversary(
            round, person, "rules", templates="neutral | A dog sat by the door."
        ),
    }
    return rows


@pytest.fixture
def own(nli, alice):
    return fill(nli, alice)


@pytest.fixture
def foreign(people, alice):
    """Rows of a task in which none of the people has a role."""
    task = TaskFactory(code="foreign", config_text=Task.objects.get(code="nli").config_text)
    return fill(RoundFactory(task=task), alice)


def change_url(model, row):
    return reverse(f"admin:{model}_change", args=[row.pk])


def list_url(model):
    return reverse(f"admin:{model}_changelist")
