"""Tries, judged, confirmed, catches, waiting: one round, and every place says the same of it."""

import re
from pathlib import Path

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.models import Example
from core.accounts.services import get_annotator
from dynabench.manage.activity import count_activity
from dynabench.manage.round_cards import build_round_cards
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.judging.services import fill_queue
from validation.models import Validation
from validation.rates.terms import TERMS
from validation.statistics.people import list_author_statistics

OUTCOMES = ("fooled", "not_fooled", "undecided")
VOTES = ((), ("neutral",), ("neutral",) * 3, ("entailment",) * 3)
"""Nobody's, one of the three that decide, three that confirm the author, three that do not."""


@pytest.fixture
def made(nli, alice, bob, few_are_enough):
    """Each outcome with each number of votes; then one retracted, and one by a program."""
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    people = [get_annotator(UserFactory()) for _ in range(3)]
    cases = [(outcome, votes) for outcome in OUTCOMES for votes in VOTES]
    cases += [("fooled", VOTES[2])] * 3
    for number, (outcome, votes) in enumerate(cases):
        example = write(nli, bob, number, outcome)
        for person, label in zip(people, votes, strict=False):
            Validation.objects.create(example=example, validator=person, label=label)
    rederive(round=nli, policy=Policy("n-equal", 3))
    last = list(Example.objects.order_by("-pk")[:2])
    Example.objects.filter(pk=last[0].pk).update(retracted_at=timezone.now())
    Example.objects.filter(pk=last[1].pk).update(by_program=True)
    return nli


def expected(round):
    """The numbers by the definitions, in Python."""
    rows = Example.objects.filter(round=round).select_related("consensus")
    tries = [one for one in rows if not (one.retracted_at or one.by_program)]
    judged = [one for one in tries if one.validations.exists()]
    decided = [one for one in judged if one.consensus.state == "decided"]
    confirmed = [one for one in decided if one.consensus.label == one.inputs["label"]]
    catches = [one for one in confirmed if one.outcome == "fooled"]
    fooled = [one for one in tries if one.outcome == "fooled"]
    found = [tries, fooled, judged, decided, confirmed, catches]
    names = ("tries", "fooled", "judged", "decided", "confirmed", "catches")
    return dict(zip(names, map(len, found), strict=True))


def test_every_place_counts_the_same(made, as_alice, bob):
    wanted = expected(made)
    assert wanted["catches"] < wanted["confirmed"] < wanted["decided"] < wanted["judged"]
    in_api = {
        "collected": "tries", "verified": "confirmed", "verified_fooled": "catches",
        **{name: name for name in ("fooled", "judged", "decided")},
    }  # fmt: skip
    api = as_alice.get(f"/api/v1/tasks/nli/rounds/{made.number}/statistics/").json()["all"]
    assert {word: api[name] for name, word in in_api.items()} == wanted
    csv = as_alice.get("/t/nli/numbers.csv").text.splitlines()
    line = dict(zip(csv[0].split(","), csv[1].split(","), strict=True))
    assert {word: int(line[name]) for name, word in in_api.items()} == wanted
    (card,) = build_round_cards(made.task)
    names = {**in_api, "validated_errors": "catches"}
    assert {names[name]: n for name, n in card.numbers.items() if name in names} == wanted
    (author,) = list_author_statistics([made])
    assert (author.tries, author.fooled, author.judged) == tuple(wanted.values())[:3]
    assert (author.validity.value * author.validity.n, author.validity.n) == (
        pytest.approx(wanted["confirmed"]), wanted["decided"],
    )  # fmt: skip
    assert author.vmer.value == pytest.approx(wanted["catches"] / wanted["tries"])
    now = count_activity(made)
    ((_day, tries, fooled, catches, _parts),) = now.days
    assert (tries, fooled, catches) == (wanted["tries"], wanted["fooled"], wanted["catches"])
    sums = [sum(column) for column in list(zip(*now.labels, strict=True))[1:]]
    assert sums == [wanted["tries"], wanted["confirmed"], wanted["catches"]]
    assert (now.parts.tries, now.parts.catches) == (wanted["tries"], wanted["catches"])


@pytest.mark.parametrize("is_filled", [False, True])
def test_what_waits_is_one_number(made, as_alice, is_filled):
    """Whether or not the queue has looked at the examples."""
    if is_filled:
        fill_queue(round=made)
    cache.clear()
    (card,) = build_round_cards(made.task)
    assert card.waiting == as_alice.get("/own/nli/").context["now"].waiting > 0


def test_the_words_are_explained_where_they_are_used(made, as_alice, client):
    page = client.get("/help/numbers/").text
    for name, term in TERMS.items():
        assert f'<dt id="{name}">{term.title}</dt>' in page
    assert 'href="/help/numbers/#words"' in as_alice.get("/own/nli/").text
    docs = Path("docs/statistics.md").read_text(encoding="utf-8")
    for name in TERMS:
        assert re.search(rf"^\| {name} \|", docs, re.M)
