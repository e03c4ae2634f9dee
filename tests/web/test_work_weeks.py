"""The weeks of My work: columns of what became of a person's tries."""

import pytest
from django.core.cache import cache

from core.accounts.services import get_annotator
from dynabench.people.work import MIN_SHOWN_WEEKS, describe_best_week
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.models import Validation

pytestmark = pytest.mark.django_db


def test_the_best_week_is_the_title():
    assert describe_best_week([0, 9, 3]) == "Best week: 9 tries"
    assert describe_best_week([0, 1]) == "Best week: 1 try"


def test_whoever_has_only_judged_gets_tasks_to_begin_with(as_alice, alice, bob, nli):
    example = write(nli, bob)
    Validation.objects.create(example=example, validator=get_annotator(alice), label="neutral")
    assert [card.task for card in as_alice.get("/me/").context["start"]] == [nli.task]
    write(nli, alice, 1)
    assert as_alice.get("/me/").context["start"] == []


def test_each_try_is_in_one_part_of_its_week(as_alice, alice, nli):
    judges = [get_annotator(UserFactory()) for _ in range(3)]
    for number, label in enumerate(("neutral", "neutral", "entailment", "neutral")):
        example = write(nli, alice, number, hypothesis=f"Statement {number}.", label=label)
        for judge in judges if number < 3 else ():
            Validation.objects.create(example=example, validator=judge, label="neutral")
    rederive(round=nli, policy=Policy("n-equal", 3))
    nli.examples.filter(digest="1").update(outcome="not_fooled")
    rederive(round=nli, policy=Policy("n-equal", 3))
    cache.clear()
    page = as_alice.get("/me/")
    figure = page.context["trend"]
    label, cells = figure.table.rows[-1]
    # Caught, confirmed without a catch, waiting, not confirmed.
    assert cells == ["1", "1", "1", "1"]
    assert figure.title == "Best week: 4 tries"
    assert 'class="figure columned weeks"' in page.text
    assert label in page.text
    assert len(figure.table.rows) == MIN_SHOWN_WEEKS
