"""What the owners' pages show."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.judging.queue_services import fill_queue
from validation.models import Skip, Validation


@pytest.fixture
def busy(nli, alice, bob):
    """Alice reads the task's pages. Bob wrote four examples over three days; two were judged."""
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    people = [get_annotator(UserFactory()) for _ in range(3)]
    now = timezone.now()
    for number, label in enumerate(("neutral", "neutral", "entailment", "entailment")):
        example = write(nli, bob, number, hypothesis=f"Statement {number}.", label=label)
        sent = now - timedelta(days=number)
        Example.objects.filter(pk=example.pk).update(
            created_at=sent, shown_at=sent - timedelta(seconds=60)
        )
        for person in people if number < 2 else ():
            said = "neutral" if number == 0 else "contradiction"
            Validation.objects.create(example=example, validator=person, label=said, seconds=20)
    fill_queue(round=nli)
    rederive(round=nli, policy=Policy("n-equal", 3))
    Example.objects.filter(digest="3").update(outcome="not_fooled")
    return nli


@pytest.fixture
def crowd(nli, alice, bob):
    """Bob labels right, Carol wrong; of the validators Mallory always disagrees."""
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    carol = UserFactory()
    people = [get_annotator(UserFactory()) for _ in range(3)]
    mallory = get_annotator(UserFactory())
    for number in range(48):
        author = bob if number % 2 else carol
        label = "neutral" if number % 2 else "entailment"
        example = write(nli, author, number, hypothesis=f"Statement {number}.", label=label)
        for person in people:
            Validation.objects.create(example=example, validator=person, label="neutral")
        Validation.objects.create(example=example, validator=mallory, label="contradiction")
    Skip.objects.create(example=example, validator=mallory)
    rederive(round=nli, policy=Policy("n-equal", 3))
    return {"bob": get_annotator(bob), "carol": get_annotator(carol), "mallory": mallory}


SHORT = """version: 1
name: Short
summary: A short one.
instructions: Read first.
goal: {field: label, text: "Write a statement that is {label}"}
context:
  - name: premise
    type: text
input:
  - name: hypothesis
    type: long_text
  - name: label
    type: multiclass
    labels: [neutral, entailment]
output:
  - name: label
    type: multiclass
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
limits: {tries_per_day: 9}
"""

BROKEN = SHORT.replace("[neutral, entailment]", "[neutral, neutral]")
"""It has an error in line 14."""
