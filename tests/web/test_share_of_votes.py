"""One person gives only a share of the votes of a large round, and is thanked then."""

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation import selectors as writing
from annotation.refusals import CapReached
from core.accounts.services import get_annotator
from tests.support.factories import ContextFactory, RoundFactory
from tests.support.judging import write
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.judging import gold, services, vote_caps
from validation.models import JudgeLease, Validation

URL = "/t/nli/judge/"
REACHED = 'id="share-reached"'


@pytest.fixture
def large(nli, bob, monkeypatch):
    """Forty examples that need 120 votes, and are many; one person may give 6."""
    monkeypatch.setattr(writing, "MIN_LARGE_ROUND_EXAMPLES", 40)
    monkeypatch.setattr(gold, "GOLD_INTERVAL", 2**64)
    for number in range(40):
        write(nli, bob, number)
    return nli


def judge(validator, round, times):
    for _ in range(times):
        lease = services.lease_next(validator=validator, task=round.task)
        vote = Vote(label="neutral")
        services.cast_validation(validator=validator, example=lease.example, vote=vote)


def test_who_has_given_the_share_is_thanked(as_alice, alice, large):
    me = get_annotator(alice)
    judge(me, large, 5)
    as_alice.get(URL)
    form = {"example": JudgeLease.objects.get(takes_place=True).example.uuid}
    page = as_alice.post(URL, {**form, "answer": "label:neutral"}, **HTMX).text
    assert REACHED in page
    assert "5% of" in page
    assert "Saved." in page
    assert "Undo" in page
    assert Validation.objects.filter(validator=me).count() == 6
    page = as_alice.get(URL).text
    assert REACHED in page
    assert 'id="nothing-to-judge"' not in page


def test_who_takes_an_answer_back_goes_on(as_alice, alice, large):
    me = get_annotator(alice)
    judge(me, large, 6)
    vote = Validation.objects.order_by("pk").last()
    services.undo_validation(validator=me, validation=vote)
    assert 'id="judge-title"' in as_alice.get(URL).text


def test_others_go_on(large, alice, as_alice, bob):
    judge(get_annotator(alice), large, 6)
    second = RoundFactory(task=large.task, number=2, state="closed")
    ContextFactory(round=second)
    write(second, bob)
    lease = services.lease_next(validator=get_annotator(alice), task=large.task)
    assert lease.example.round == second
    as_alice.get(URL)
    form = {"example": lease.example.uuid, "answer": "label:neutral"}
    assert REACHED in as_alice.post(URL, form, **HTMX).text


def test_examples_that_ran_out_or_were_skipped_are_no_way_around(large, alice):
    me = get_annotator(alice)
    skipped = services.lease_next(validator=me, task=large.task).example
    services.skip_example(validator=me, example=skipped)
    judge(me, large, 6)
    with pytest.raises(CapReached):
        services.cast_validation(validator=me, example=skipped, vote=Vote(label="neutral"))
    assert Validation.objects.filter(validator=me).count() == 6


@pytest.mark.parametrize(("share", "size"), [("1", 40), ("0.05", 41)])
def test_there_may_be_no_cap(large, alice, monkeypatch, share, size):
    monkeypatch.setattr(writing, "MIN_LARGE_ROUND_EXAMPLES", size)
    text = large.task.config_text
    large.task.config_text = text.replace("limits: {", f"limits: {{share_of_votes: {share}, ")
    judge(get_annotator(alice), large, 9)


def test_what_is_judged_in_part_counts_in_part(large, alice):
    assert vote_caps.count_required_votes(large.pk) == 40 * 3
    large.examples.filter(pk__lte=large.examples.order_by("pk")[19].pk).update(outcome="not_fooled")
    assert vote_caps.count_required_votes(large.pk) == (20 + 0.2 * 20) * 3
    large.examples.filter(outcome="not_fooled").update(retracted_at=timezone.now())
    assert vote_caps.count_required_votes(large.pk) == 0  # twenty are few


def test_with_many_votes_one_is_looked_at_now_and_then(large, alice, monkeypatch):
    me = get_annotator(alice)
    judge(me, large, 6)
    cache.clear()
    monkeypatch.setattr(vote_caps, "MAX_SCANNED_EXAMPLES", 1)
    latest = services.queue.find_latest_lease(me, large.task)
    due = latest._replace(uuid=latest.uuid.__class__(int=7 * 5))  # 1 in 7
    assert not vote_caps.has_probably_votes_left(me, large.task, due)
    other = latest._replace(uuid=latest.uuid.__class__(int=36))
    assert vote_caps.has_probably_votes_left(me, large.task, other)


def test_votes_in_another_round_do_not_count(large, alice, bob):
    earlier = RoundFactory(task=large.task, number=2, state="closed")
    ContextFactory(round=earlier)
    for number in range(40, 46):
        vote = {"validator": get_annotator(alice), "author": get_annotator(bob)}
        Validation.objects.create(example=write(earlier, bob, number), label="neutral", **vote)
    judge(get_annotator(alice), large, 1)
    assert services.lease_next(validator=get_annotator(alice), task=large.task)
