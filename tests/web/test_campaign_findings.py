"""What a campaign finds, how new it is, and what it costs."""

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from annotation.models import Example, TargetOutput, TextKey, TextVector
from annotation.vector_services import store_vectors
from dynabench.campaigns import services
from dynabench.campaigns.findings import vector_jobs
from dynabench.campaigns.models import Campaign, LedgerRow, Place
from dynabench.campaigns.selectors import calculate_numbers, list_place_rows
from dynabench.people.deletion.services import delete_person
from evaluation.training import sentences
from tasks.models import ModelUse, TargetModel, TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import UserFactory
from tests.support.judging import answered, write_many
from validation.models import Consensus, ExampleTag, Validation

pytestmark = pytest.mark.django_db
PARTS = ["judges", "model_calls", "evaluation"]
TEXTS = ["Jonas has never been on the ferry at nine.", "The ferry leaves each Tuesday morning."]


@pytest.fixture
def campaign(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    plan = {"each": 9, "pay_bonus": 100, "novel_bonus": True}
    made = open_campaign(nli.task, opened_at=timezone.now(), **plan)
    take_part(made)
    return made


@pytest.fixture
def found(nli, campaign):
    """Three verified errors: the first and the last are equal in words."""
    examples = write_many(nli, Place.objects.get().annotator.user, ["fooled"] * 3)
    for number, example in enumerate(examples):
        example.inputs["hypothesis"] = TEXTS[number % 2]
        example.metadata = {"tag": ["negation"]}
        example.save()
        ExampleTag.objects.create(example=example, name="numbers")
        state = {"state": "decided", "label": "neutral", "votes": 3, "still_needed": 0}
        verified = {"is_verified": True, "is_validated_error": True, "decided_at": timezone.now()}
        Consensus.objects.create(example=example, round=nli, **state, **verified)
        TextKey.objects.create(example=example, round=nli, key=5)
    Place.objects.update(state="submitted", submitted_at=timezone.now())
    return examples


def bonuses():
    return list(
        LedgerRow.objects.filter(kind="bonus").order_by("pk").values_list("amount", flat=True)
    )


def test_what_was_found_before_is_worth_less(campaign, found, as_alice):
    assert services.credit_due_pay(campaign=campaign) == 0  # what they mean is still to be compared
    Consensus.objects.update(decided_at=timezone.now() - timedelta(hours=2))
    assert services.credit_due_pay(campaign=campaign) == 3  # no encoder came: by words
    assert bonuses() == [100, 100, 0]
    assert services.credit_due_pay(campaign=campaign) == 0
    page = as_alice.get("/own/nli/campaigns/study/coverage/")
    for words in ("neutral: 3", "numbers: 3", "negation: 3", "3 ×"):
        assert words in page.text


@pytest.fixture
def encoder(monkeypatch):
    """Answers what it is told, in this process."""
    told = {}
    monkeypatch.setattr(sentences, "compute_encoder_digest", lambda: "one")
    monkeypatch.setattr(vector_jobs, "run_bounded", lambda check, bounds: check())
    monkeypatch.setattr(sentences, "embed_texts", lambda texts: [told[text] for text in texts])
    return told


def test_meanings_are_compared_once_a_worker_has_looked(campaign, found, encoder, monkeypatch):
    TextKey.objects.all().delete()  # by words all are new
    encoder |= {TEXTS[0]: bytes([10, 0]), TEXTS[1]: bytes([5, 3])}
    rung = []
    monkeypatch.setattr(vector_jobs, "enqueue", lambda *message: rung.append(message))
    cache.clear()
    assert [vector_jobs.enqueue_vector_jobs() for _ in range(2)] == [1, 0]
    Example.objects.filter(pk=found[1].pk).update(inputs={"hypothesis": "Short."})
    _function, task = rung[0]
    vector_jobs.make_vectors(task)
    assert bytes(TextVector.objects.get(example=found[1]).values) == b""  # too short to tell
    services.credit_due_pay(campaign=campaign)
    assert bonuses() == [100, 100, 0]
    cache.clear()
    assert vector_jobs.enqueue_vector_jobs() == 0
    monkeypatch.setattr(sentences, "compute_encoder_digest", lambda: "two")
    assert vector_jobs.enqueue_vector_jobs() == 1  # another encoder: all of it again
    vector_jobs.make_vectors(task)
    assert set(TextVector.objects.values_list("encoder", flat=True)) == {"two"}


def test_a_site_without_an_encoder_and_other_languages_compare_words(campaign, found, encoder):
    cache.clear()
    config = campaign.task.config_text.replace("language: en", "language: de")
    text = config if "language: de" in config else f"language: de\n{config}"
    campaign.task.config_text = text
    campaign.task.save()
    assert campaign.task.config.language == "de"
    assert vector_jobs.enqueue_vector_jobs() == 0
    assert services.credit_due_pay(campaign=campaign) == 3  # at once


def test_groups_are_alike_in_meaning_too(campaign, found, as_alice):
    TextKey.objects.all().delete()
    url = "/own/nli/campaigns/study/coverage/"
    assert " ×" not in as_alice.get(url).text
    values = [bytes([10, 0]), bytes([8, 3]), bytes([0, 10])]
    store_vectors(encoder="one", vectors=dict(zip((one.pk for one in found), values, strict=True)))
    assert "2 ×" in as_alice.get(url).text


def test_who_leaves_takes_their_vectors_along(campaign, found):
    store_vectors(encoder="one", vectors={one.pk: b"1" for one in found})
    delete_person(user=Place.objects.get().annotator.user)
    assert not TextVector.objects.exists()
    assert store_vectors(encoder="one", vectors={one.pk: b"1" for one in found}) == 0


def costs(campaign):
    numbers = calculate_numbers(campaign, list_place_rows(campaign))
    return numbers.parts, numbers.cost_per_fooling_example


def test_the_cost_has_its_parts_and_says_what_is_unknown(nli, campaign, found, as_alice, alice):
    LedgerRow.objects.create(
        place=Place.objects.get(), kind="earned", amount=150, currency="EUR", cause="task"
    )
    assert costs(campaign) == ((150, 0, 0, 0), 50)
    first, second, _third = found
    for example, options in ((first, {"price_in": 2}), (second, {})):
        answered(example)
        target = TargetModel.objects.last()
        target.options, target.url = options, ""
        target.save()
    outside = write_many(nli, alice, ["fooled"])[0]  # of nobody in the campaign
    paid = TargetOutput.objects.get(example=first)
    TargetOutput.objects.create(
        example=outside, target=paid.target, version=paid.version, output={}, seconds=1
    )
    ModelUse.objects.create(target=paid.target, round=nli, day="2026-01-01", cost=0.5)
    TargetOutput.objects.filter(example=second).update(seconds=36)
    voter, judges = (
        UserFactory().annotator,
        open_campaign(nli.task, slug="judges", kind="judge", pay_task=100, each=10, fee_percent=20),
    )
    vote = {"example": first, "author": first.annotator, "label": "neutral"}
    Validation.objects.create(validator=voter, **vote)
    model = accepted_model(nli.task)
    version = set_version(nli.task, round=nli)
    queued_run(model, version, usage={"seconds": 7200.0})
    assert costs(campaign) == ((150, None, None, None), 50)
    page = as_alice.get("/own/nli/campaigns/study/")
    parts = re.findall(r'<dd data-part="(\w+)">([^<]+)</dd>', page.text)
    assert parts == [("people", "0.50 EUR"), *((part, "–") for part in PARTS)]
    Campaign.objects.filter(pk=campaign.pk).update(machine_hour=200)
    campaign.refresh_from_db()
    Place.objects.create(campaign=judges, annotator=voter, expires_at=timezone.now())
    # A vote at 12; half of what the round's calls cost, and 36 seconds of a model; two hours, as
    # nobody else's examples are verified.
    assert costs(campaign) == ((150, 12, 25 + 2, 400), round(589 / 3))
    Validation.objects.create(validator=alice.annotator, **vote)
    assert costs(campaign)[0].judges is None
    nli.pay_validation = 5
    nli.save()
    assert costs(campaign)[0].judges == 17
    numbers = calculate_numbers(campaign, list_place_rows(campaign))
    assert (numbers.cost_in_the_end, numbers.fooling_in_the_end) == (2 * 594, 6)
