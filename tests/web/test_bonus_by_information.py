"""A bonus by the information of catches: credited once, previewed, in a file and the API."""

import csv
import io

import pytest
from django.utils import timezone

from annotation.models import TargetOutput
from core.errors import Refused
from dynabench.campaigns.models import LedgerRow, Place
from dynabench.campaigns.services import change_campaign, credit_due_pay
from evaluation.models import ItemFit, ItemProperty
from tasks.models import Round, TargetVersion, TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.evaluations import set_version
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write_many
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db
URL = "/own/nli/campaigns/study/bonus/"
API = "/api/v1/tasks/nli/campaigns/study/bonus-preview/"


@pytest.fixture
def campaign(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    plan = {"each": 9, "pay_bonus": 100, "information_bonus": True, "fee_percent": 10}
    made = open_campaign(nli.task, opened_at=timezone.now(), **plan)
    take_part(made)
    return made


@pytest.fixture
def catches(nli, campaign):
    """Two catches: on the first all three agree, on the second two of three."""
    examples = write_many(nli, Place.objects.get().annotator.user, ["fooled"] * 2)
    judges = [UserFactory() for _ in range(3)]
    for place, example in enumerate(examples):
        decision = {"state": "decided", "label": "neutral", "votes": 3, "still_needed": 0}
        verified = {"is_verified": True, "is_validated_error": True, "decided_at": timezone.now()}
        Consensus.objects.create(example=example, round=nli, **decision, **verified)
        for number, judge in enumerate(judges):
            label = "entailment" if place and not number else "neutral"
            Validation.objects.create(
                example=example,
                validator=judge.annotator,
                author=example.annotator,
                label=label,
            )
    Place.objects.update(state="submitted", submitted_at=timezone.now())
    return examples


def bonuses():
    rows = LedgerRow.objects.filter(kind="bonus").order_by("pk")
    return list(rows.values_list("amount", flat=True))


def test_the_bonus_follows_agreement_and_is_paid_once(campaign, catches):
    assert credit_due_pay(campaign=campaign) == 2
    assert bonuses() == [100, 44]
    # Later votes change nothing that was credited.
    Validation.objects.all().delete()
    assert credit_due_pay(campaign=campaign) == 0
    assert bonuses() == [100, 44]


def test_models_that_are_right_and_items_that_tell_nothing_earn_less(nli, campaign, catches):
    for place, is_fooled in enumerate([True, False]):
        target = scripted_target(nli, name=f"model {place}")
        TargetOutput.objects.create(
            example=catches[1],
            target=target,
            version=TargetVersion.objects.create(target=target, digest=str(place) * 64),
            output={"label": "neutral"},
            seconds=0.1,
            fooled=is_fooled,
        )
    version = set_version(nli.task, "round-1")
    fit = ItemFit.objects.create(version=version, model_count=20)
    ItemProperty.objects.create(
        fit=fit, position=0, uid="u", example=catches[0], right_share=0.5, discrimination=0.3
    )
    credit_due_pay(campaign=campaign)
    # The second: ⅔ right × ½ of the models wrong − ½ × the chance of 4/9 to disagree.
    assert bonuses() == [30, 11]


def test_without_the_rule_each_catch_earns_the_same(campaign, catches):
    campaign.information_bonus = False
    campaign.save()
    credit_due_pay(campaign=campaign)
    assert bonuses() == [100, 100]


def test_the_rule_is_fixed_once_the_campaign_has_opened(campaign, alice):
    with pytest.raises(Refused):
        change_campaign(campaign=campaign, actor=alice, information_bonus=False)


def test_past_catches_show_what_both_bonuses_cost(nli, campaign, catches, as_alice):
    assert as_alice.get(API).json()["catches"] == []  # the round isn't over
    Round.objects.update(state="closed")
    found = as_alice.get(API).json()
    assert [catch["information"] for catch in found["catches"]] == [0.44, 1.0]
    (person,) = found["people"]
    assert (person["catches"], person["flat"], person["by_information"]) == (2, 200, 144)
    assert person["person"] == str(catches[0].annotator)
    assert (found["flat_cost"], found["information_cost"]) == (220, 159)
    page = as_alice.get(URL)
    assert page.context["preview"].information_yield > page.context["preview"].flat_yield
    rows = list(csv.DictReader(io.StringIO(as_alice.get(URL.replace("bonus/", "bonus.csv")).text)))
    assert [(row["flat"], row["by_information"]) for row in rows] == [("100", "44"), ("100", "100")]
    assert not LedgerRow.objects.filter(kind="bonus").exists()  # a preview pays nothing


def test_only_owners_see_it(campaign, catches, client):
    stranger = UserFactory()
    client.force_login(stranger)
    assert client.get(URL).status_code in (403, 404)
    assert client.get(API).status_code in (403, 404)


def test_people_are_told_before_they_agree(campaign, client):
    campaign.refresh_from_db()
    text = client.get(f"/c/{campaign.slug}/").text
    campaign.information_bonus = False
    campaign.save()
    assert client.get(f"/c/{campaign.slug}/").text != text
