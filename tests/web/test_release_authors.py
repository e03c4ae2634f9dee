"""What a release says of who wrote and judged it: in every card the same, as the rows have it."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest
import yaml

from annotation.models import Assignment, Attempt, Example, Suggestion
from evaluation.dataset_releases.authorship import read_authorship
from tasks.models import Task
from tests.support.releases import (  # noqa: F401
    _own_storage,
    closed,
    content,
    people,
    released,
)
from validation.models import Validation

CLAIMS = ("people wrote", "written by people", "people judged", "crowdsourced", "human-in-the-loop")


def cards_of(dataset):
    """The dataset card's text, its metadata, the benchmark card and Croissant's description."""
    text = content(dataset, "README.md").decode()
    card = json.loads(content(dataset, "benchmark_card.json"))["benchmark_card"]
    return {
        "text": text,
        "hub": yaml.safe_load(text.split("---")[1]),
        "card": card,
        "croissant": json.loads(content(dataset, "croissant.json")),
    }


def test_people_and_programs_are_told_apart(closed):
    Example.objects.filter(pk__in=Example.objects.values("pk")[:1]).update(by_program=True)
    imported = Example.objects.filter(by_program=False, outcome="fooled").last()
    Example.objects.filter(pk=imported.pk).update(uid="elsewhere-1")
    rest = Example.objects.filter(by_program=False, uid=None, outcome="fooled")
    first = rest.first()
    second = rest.exclude(annotator=first.annotator).first()
    for example, action in ((first, "use"), (second, "ignore")):
        assignment = Assignment.objects.create(
            annotator=example.annotator, round=closed, context=example.context
        )
        Suggestion.objects.create(assignment=assignment, text="So.", source="g", action=action)
        Attempt.objects.create(
            annotator=example.annotator, assignment=assignment, inputs={}, state="done",
            key="0" * 31 + str(int(action == "use")), asked_at=example.created_at, example=example,
        )  # fmt: skip
    found = read_authorship(released(closed))
    rows = found.person_rows + found.program_rows + found.brought_rows
    assert (found.program_rows, found.brought_rows, found.helped_rows) == (1, 1, 1)
    assert rows == Example.objects.filter(dataset_items__isnull=False).count()
    assert found.has_synthetic_rows
    assert found.language_creators == ["found", "crowdsourced", "machine-generated"]


def test_rows_of_people_are_said_to_be_theirs(closed):
    dataset = released(closed)
    cards, found = cards_of(dataset), read_authorship(dataset)
    assert not found.has_synthetic_rows
    assert cards["croissant"]["rai:hasSyntheticData"] is False
    assert cards["hub"]["language_creators"] == ["crowdsourced"]
    assert "synthetic" not in cards["hub"]["tags"]
    for text in (cards["text"], cards["card"]["data"]["source"]):
        assert found.describe_writers() in text


def test_simulated_rows_are_nowhere_said_to_be_peoples(closed, monkeypatch):
    monkeypatch.setattr(Task, "is_simulated", True)
    cards = cards_of(released(closed))
    told = json.dumps(cards).lower()
    assert not [claim for claim in CLAIMS if claim in told]
    assert cards["hub"]["annotations_creators"] == ["machine-generated"]
    assert "synthetic" in cards["hub"]["tags"]
    assert cards["croissant"]["rai:hasSyntheticData"] is True
    assert "simulated" in cards["card"]["data"]["source"].lower()


@pytest.mark.parametrize(
    ("votes", "judges", "creators"),
    [
        ("none", "people", ["crowdsourced"]),
        ("some", "people and programs", ["crowdsourced", "machine-generated"]),
        ("all", "programs", ["machine-generated"]),
    ],
)
def test_votes_of_programs_are_said_to_be_theirs(closed, votes, judges, creators):
    dataset = released(closed)
    voted = Validation.objects.filter(example__dataset_items__dataset=dataset)
    if votes != "none":
        some = list(voted.values_list("pk", flat=True)[: 1 if votes == "some" else None])
        Validation.objects.filter(pk__in=some).update(by_program=True)
    found = read_authorship(dataset)
    assert (found.judges, found.annotations_creators) == (judges, creators)
