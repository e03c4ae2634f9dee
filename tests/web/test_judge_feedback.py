"""What judges are told of their work: their agreement, and what was decided with their votes."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Template
from django.utils import timezone

from core.accounts.services import get_annotator
from tests.support.judging import write
from tests.support.releases import judge, people  # noqa: F401
from validation.judging.queue import UNDO_TIME
from validation.models import Consensus, Validation
from validation.rewards.scores import MIN_JUDGEMENTS
from validation.templatetags.feedback import decided_today, find_agreement_to_show

# ruff: noqa: F811  (fixtures are named where they are used)

MINE = MIN_JUDGEMENTS


@pytest.fixture
def judged(nli, alice, bob, people):
    """Ten decided examples; Alice's vote is among those on the first eight, as the others'."""
    me = get_annotator(alice)
    for number in range(10):
        example = write(nli, bob, number, label="neutral")
        voters = [me, *people[:2]] if number < MINE else people[:3]
        judge(example, voters, "neutral")
    final = timezone.now() - UNDO_TIME - timedelta(seconds=1)
    Validation.objects.update(created_at=final)
    Consensus.objects.update(decided_at=final)
    return nli.task


@pytest.fixture(autouse=True)
def _whole_day(monkeypatch):
    """Midnight is far away, whatever the time of the run."""
    yesterday = timezone.now() - timedelta(hours=12)
    monkeypatch.setattr("validation.templatetags.feedback.get_midnight", lambda: yesterday)


def make_sensitive(task):
    warning = "content_warning: {text: It hurts.}"
    task.config_text = task.config_text.replace("content_warning: null", warning)
    task.save()


@pytest.mark.parametrize(("number", "share"), [(10, 1), (20, 1), (9, None), (0, None)])
def test_agreement_is_told_after_each_tenth(judged, alice, number, share):
    assert find_agreement_to_show(alice, judged, number) == share


def test_agreement_needs_decided_judgements(judged, alice):
    Validation.objects.filter(validator=get_annotator(alice)).first().delete()
    assert find_agreement_to_show(alice, judged, 10) is None


def test_what_was_decided_is_told_with_ones_own_part(judged, alice, bob):
    told = decided_today(alice, judged)
    assert (told.total, told.own) == (10, MINE)
    assert decided_today(bob, judged).own is None  # he has judged none


def test_few_votes_tell_nothing_of_others(judged, alice):
    Validation.objects.filter(validator=get_annotator(alice)).first().delete()
    assert decided_today(alice, judged).own is None


def test_votes_that_can_be_undone_tell_nothing(judged, alice):
    Validation.objects.filter(validator=get_annotator(alice)).update(created_at=timezone.now())
    assert decided_today(alice, judged).own is None


def test_a_decision_tells_nothing_while_a_vote_on_it_can_be_undone(judged, alice):
    """Who saw the number move beside "Undo" could read others' votes from it."""
    last = Consensus.objects.latest("pk")
    Consensus.objects.filter(pk=last.pk).update(decided_at=timezone.now())
    assert decided_today(alice, judged).total == 9
    Consensus.objects.update(decided_at=timezone.now())
    assert decided_today(alice, judged) is None


@pytest.mark.parametrize(("number", "is_told"), [(MINE, True), (MINE - 1, False)])
def test_few_decisions_tell_nothing(judged, alice, number, is_told):
    kept = Consensus.objects.order_by("pk").values_list("pk", flat=True)[:number]
    Consensus.objects.exclude(pk__in=list(kept)).update(decided_by="owner")
    assert (decided_today(alice, judged) is not None) is is_told


def test_owners_decisions_are_not_counted(judged, alice):
    Consensus.objects.update(decided_by="owner")
    assert decided_today(alice, judged) is None


def test_sensitive_tasks_tell_nothing(judged, alice):
    make_sensitive(judged)
    assert find_agreement_to_show(alice, judged, 10) is None
    assert decided_today(alice, judged) is None


def test_the_pages_show_it(as_alice, judged, alice):
    page = as_alice.get("/t/nli/judge/").text
    assert 'id="nothing-to-judge"' in page
    assert 'id="decided-today"' in page
    template = Template('{% include "validation/_agreement.html" %}')
    shown = template.render(Context({"user": alice, "task": judged, "judged": 10}))
    assert 'id="agreement"' in shown
    values = {"user": AnonymousUser(), "task": judged, "judged": 0}
    assert 'id="agreement"' not in template.render(Context(values))
