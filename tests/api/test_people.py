"""What an owner's pages tell of people, of a round's activity and of the second opinion."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.people import get_shown_name
from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.api_writing import error
from tests.support.factories import RoundFactory, UserFactory
from tests.support.judged_rounds import judged  # noqa: F401
from tests.support.owner_pages import (
    busy,  # noqa: F401
    crowd,  # noqa: F401
)
from tests.support.policies import rederive
from tests.support.query_counts import check, fill_review
from tests.support.roles import refused
from validation.consensus.consensus import Policy
from validation.models import Consensus, Validation

TASK, ROUND = "/api/v1/tasks/nli/", "/api/v1/tasks/nli/rounds/1/"
OF_REVIEWERS = [f"{TASK}authors/", f"{TASK}validators/", f"{ROUND}second-opinion/"]


@pytest.mark.parametrize("role", [None, "viewer", "reviewer"])
def test_who_may_read_what(bobs, bob, nli, role):
    if role:
        TaskMember.objects.create(task=nli.task, user=bob, role=role)
    for url in OF_REVIEWERS:
        assert bobs.get(url).status_code == (200 if role == "reviewer" else refused(role))
    assert bobs.get(f"{ROUND}activity/").status_code == (200 if role else 404)


@pytest.mark.parametrize("url", [*OF_REVIEWERS, f"{ROUND}activity/"])
def test_without_an_account_or_the_scope_nothing_is_read(url, anybody, api_of, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    assert anybody.get(url).status_code == 401
    error(api_of(alice, "own").get(url), 403, "scope")
    assert api_of(alice).get(url.replace("rounds/1/", "rounds/9/")).status_code == (
        404 if "rounds" in url else 200
    )


def test_authors_come_as_on_the_page(api, crowd):
    first, second = api.get(f"{TASK}authors/").json()
    assert (first["annotator"], first["labels_check"]) == (crowd["carol"].pseudonym, "fail")
    assert (second["annotator"], second["labels_check"]) == (crowd["bob"].pseudonym, "pass")
    assert (first["tries"], first["judged"]) == (24, 24)
    flip = first["label_flip"]
    assert (flip["value"], flip["n"], flip["low"] > 0.5) == (1.0, 24, True)
    assert first["median_seconds"] is first["paste_share"] is None
    assert first["notes"]["median_seconds"]


def test_validators_come_as_on_the_page(api, crowd):
    first, *others = api.get(f"{TASK}validators/").json()
    assert (first["annotator"], first["agreement_check"]) == (crowd["mallory"].pseudonym, "fail")
    assert {one["agreement_check"] for one in others} == {"pass"}
    assert (first["votes"], first["skips"], first["gold_check"]) == (48, 1, "unknown")
    assert first["gold"] is None
    assert first["notes"]["gold"]
    assert first["skipped"]["n"] == 49
    assert first["reliability"]["high"] < 0.5


def test_a_round_is_chosen(api, nli, crowd):
    RoundFactory(task=nli.task, number=2, state="closed")
    for who, many in (("authors", 2), ("validators", 4)):
        url = f"{TASK}{who}/"
        assert len(api.get(url, {"round": 1}).json()) == many
        assert api.get(url, {"round": 2}).json() == api.get(url, {"round": 2**70}).json() == []
        assert set(error(api.get(url, {"round": "x"}), 422, "invalid")["fields"]) == {"round"}


def test_only_pseudonyms_leave(api, bob, nli, crowd):
    worker = Annotator.objects.create(pseudonym="nli:A1WORKERID", source="import")
    Example.objects.filter(annotator=crowd["bob"]).update(annotator=worker)
    Validation.objects.filter(validator=crowd["mallory"]).update(validator=worker)
    for url in OF_REVIEWERS:
        text = api.get(url).text
        assert get_shown_name(worker) in text
        assert not [word for word in ("A1WORKERID", bob.email, "example.com") if word in text]


def test_activity_is_that_of_the_dashboard(api, busy):
    told = api.get(f"{ROUND}activity/").json()
    assert (told["waiting"], told["people"]) == (2, 4)
    assert told["oldest"]
    assert (told["writing"], told["judging"]) == (60, 20)
    assert [(day["tries"], day["fooled"], day["verified"]) for day in told["days"]] == [
        (1, 0, 0), (1, 1, 0), (1, 1, 0), (1, 1, 1),
    ]  # fmt: skip
    assert {"label": "definitely true", "tries": 2, "verified": 0} in told["labels"]


def test_slices_are_told(api, busy):
    busy.contexts.update(tag="ferries")
    others = re.sub(r"^slices:.*\n", "", busy.task.config_text, flags=re.MULTILINE)
    busy.task.config_text = f"{others}\nslices: [tag]\n"
    busy.task.save()
    cache.clear()
    (told,) = api.get(f"{ROUND}activity/").json()["slices"]
    assert told == {"slice": "Tag", "value": "ferries", "tries": 4, "verified": 1}


def test_nothing_that_was_not_measured_is_a_number(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    told = api.get(f"{ROUND}activity/").json()
    assert told["writing"] is told["judging"] is told["oldest"] is None
    assert (told["waiting"], told["days"]) == (0, [])


def test_the_second_opinion_tells_whom_it_believes(api, alice, nli, judged):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    rederive(round=nli, policy=Policy("plurality"))
    wrong = Consensus.objects.filter(label="entailment").first()
    Consensus.objects.filter(pk=wrong.pk).update(label="neutral")
    told = api.get(f"{ROUND}second-opinion/").json()
    assert (told["reason"], told["labels"]) == (None, ["entailment", "neutral"])
    assert sum(told["prior"].values()) == pytest.approx(1)
    (one,) = told["otherwise"]
    assert (one["example"], one["by_program"]) == (str(wrong.example.uuid), False)
    assert (one["consensus"], one["label"]) == ("neutral", "entailment")
    assert one["posterior"] > 0.5
    assert len(told["validators"]) == 4
    worst, *_, best = told["validators"]
    assert worst["validator"] == get_annotator(judged[3]).pseudonym
    assert worst["reliability"] < best["reliability"]
    assert worst["confusion"]["entailment"]["neutral"] > 0.5


def test_without_labels_there_is_no_second_opinion(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    told = api.get(f"{ROUND}second-opinion/").json()
    assert told["reason"]
    assert told["labels"] == told["otherwise"] == told["validators"] == []


ADDRESSES = {
    "API authors": f"{TASK}authors/",
    "API validators": f"{TASK}validators/",
    "API activity": f"{ROUND}activity/",
    "API second opinion": f"{ROUND}second-opinion/",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_query_count(address, as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")

    def ask():
        as_alice.get(ADDRESSES[address])
        cache.clear()  # activity is kept there
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(ADDRESSES[address]).status_code == 200
        return len(queries)

    fill_review(1, nli, UserFactory.create_batch(5))
    few = ask()
    fill_review(12, nli, UserFactory.create_batch(5), first=1)
    assert ask() == few
    check(address, few)
