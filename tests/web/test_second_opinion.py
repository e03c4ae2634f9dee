"""Dawid–Skene on the site: it decides by a stored model, which is refitted."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judged_rounds import (
    ENTAILMENT,
    judged,  # noqa: F401
)
from tests.support.judging import judge, write
from tests.support.policies import rederive
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy, Vote
from validation.decisions.jobs import refit_second_opinions
from validation.decisions.policy_preview import preview_policy
from validation.decisions.second_opinion import compute_second_opinion
from validation.decisions.services import derive_round
from validation.models import Consensus, QueueItem, RoundPolicy, Validation
from validation.rates.agreement import MAX_CHOICES
from validation.rates.rates import Undefined

POLICY = Policy("dawid-skene", threshold=0.9)


def test_the_policy_decides_by_the_posterior(client, nli, bob, judged):
    rederive(round=nli, policy=POLICY)
    assert Consensus.objects.filter(state="decided").count() == 20
    found = compute_second_opinion(nli)
    for row in Consensus.objects.all():
        best = max(found.posteriors[row.pk], key=found.posteriors[row.pk].get)
        assert row.label == best
        assert row.still_needed == 0
    example = write(nli, bob, 50)
    client.force_login(judged[0])
    judge(client, "label:entailment", **HTMX)
    live = RoundPolicy.objects.get().fitted_model.compute_posterior(
        [(get_annotator(judged[0]).pk, "entailment")]
    )
    now = Consensus.objects.get(pk=example.pk)
    assert (now.state == "decided") == (live["entailment"] >= POLICY.threshold)
    client.force_login(judged[1])
    if now.state != "decided":
        judge(client, "label:entailment", **HTMX)
    assert Consensus.objects.get(pk=example.pk).label == "entailment"
    assert QueueItem.objects.get(pk=example.pk).still_needed == 0


def test_who_says_the_same_of_everything_decides_little(client, nli, bob, judged):
    rederive(round=nli, policy=POLICY)
    example = write(nli, bob, 50)
    client.force_login(judged[3])
    judge(client, "label:neutral", **HTMX)
    assert Consensus.objects.get(pk=example.pk).state == "undecided"
    assert QueueItem.objects.get(pk=example.pk).still_needed == 1


def test_owners_see_whom_the_model_believes(nli, judged):
    found = compute_second_opinion(nli)
    assert found.validators[0].annotator == get_annotator(judged[3])
    worst, *_, best = found.validators
    assert worst.reliability < best.reliability
    assert worst.confusion["entailment"]["neutral"] > 0.5 > best.confusion["entailment"]["neutral"]
    assert all(sum(p.values()) == pytest.approx(1) for p in found.posteriors.values())


def test_without_labels_nothing_is_decided(nli, bob):
    assert isinstance(compute_second_opinion(nli), Undefined)
    voted(write(nli, bob), Vote(verdict="flagged"), by=[UserFactory()])
    rederive(round=nli, policy=POLICY)
    assert RoundPolicy.objects.get().fitted_model is None
    assert Consensus.objects.get().state == "undecided"


@pytest.mark.parametrize(("labels", "decided"), [(2, 61), (MAX_CHOICES + 1, 0)])
def test_a_preview_decides_as_applying_the_policy_does(nli, bob, labels, decided):
    people = [UserFactory() for _ in range(3)]
    for number in range(61):
        vote = Vote(f"label {number % labels}")
        voted(write(nli, bob, number), vote, vote, vote, by=people)
    shown = preview_policy(nli, POLICY)
    assert shown.changed == decided
    rederive(round=nli, policy=POLICY)
    stored = Consensus.objects.filter(state="decided").in_bulk()
    assert len(stored) == decided
    assert all(stored[pk].label == after.label for pk, (_, after) in shown.first.items())
    assert preview_policy(nli, POLICY).changed == 0


def test_the_model_is_refitted_when_votes_have_come(nli, bob, judged):
    rederive(round=nli, policy=POLICY)
    before = RoundPolicy.objects.get().fitted_model
    assert refit_second_opinions() == 0
    for number in range(100, 103):
        voted(write(nli, bob, number), ENTAILMENT, ENTAILMENT, ENTAILMENT, by=judged)
    refit_second_opinions()
    now = RoundPolicy.objects.get().fitted_model
    assert (before.votes, now.votes) == (80, 89)
    assert Consensus.objects.filter(state="decided", label="entailment").count() == 13


def test_owners_read_it_and_nobody_else(client, alice, bob, nli, judged):
    url = "/own/nli/rounds/1/second-opinion/"
    client.force_login(bob)
    assert client.get(url).status_code == 404
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client.force_login(alice)
    page = client.get(url).text
    assert 'id="no-disagreements"' in page
    assert page.index(get_annotator(judged[3]).pseudonym) < page.index(
        get_annotator(judged[0]).pseudonym
    )
    rederive(round=nli, policy=Policy("plurality"))
    wrong = Consensus.objects.filter(label="entailment").first()
    Consensus.objects.filter(pk=wrong.pk).update(label="neutral")
    assert f"/own/nli/review/{wrong.example.uuid}/" in client.get(url).text
    Consensus.objects.all().delete()
    judged_away = client.get("/own/nli/rounds/9/second-opinion/")
    assert judged_away.status_code == 404


def test_each_judge_has_a_square(client, alice, nli, judged):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client.force_login(alice)
    page = client.get("/own/nli/rounds/1/second-opinion/")
    labels = len(page.context["model"].labels)
    judges = len(page.context["validators"])
    assert page.text.count('class="square"') == judges > 0
    assert page.text.count('<rect class="heat-') == judges * labels**2


def test_without_votes_the_page_says_why(client, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client.force_login(alice)
    assert client.get("/own/nli/rounds/1/second-opinion/").context["reason"]


def test_only_peoples_votes_stop_an_example(judged, nli):
    """People where it matters: programs that agree make nothing sure, people do."""
    rederive(round=nli, policy=Policy("dawid-skene", of=7, threshold=0.9))
    author = UserFactory()
    by_programs, by_people = write(nli, author, 100), write(nli, author, 101)
    voted(by_people, ENTAILMENT, ENTAILMENT, ENTAILMENT, by=judged)
    for person in [UserFactory() for _ in range(5)]:
        Validation.objects.create(
            example=by_programs,
            validator=get_annotator(person),
            author=by_programs.annotator,
            label="entailment",
            by_program=True,
        )
    previewed = preview_policy(nli, Policy("dawid-skene", of=7, threshold=0.9))
    derive_round(round=nli)
    assert Consensus.objects.get(pk=by_people.pk).still_needed == 0
    unsure = Consensus.objects.get(pk=by_programs.pk)
    assert (unsure.state, unsure.still_needed) == ("undecided", 1)
    assert previewed.first[by_people.pk][1].state == "decided"
    assert by_programs.pk not in previewed.first
