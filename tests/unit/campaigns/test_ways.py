"""The registry of ways into a campaign: each says what it must, or is refused."""

import re

import pytest

from dynabench.campaigns.forms import CampaignForm
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.ways.panels import Arrival, Panel
from dynabench.campaigns.ways.registry import WAYS, Way, way_choices
from tests.support.guide import registered_for_now

PARTS = {"title": "a laboratory", "place": 9}


@pytest.fixture(autouse=True)
def _ways_of_the_site():
    """Forget a test's own ways when it is over."""
    with registered_for_now():
        yield


@pytest.mark.parametrize("part", Way.PARTS)
def test_a_way_that_lacks_a_part_is_refused_by_its_name(part):
    parts = {name: value for name, value in PARTS.items() if name != part}
    with pytest.raises(TypeError, match=rf"laboratory lacks: {part}"):
        type("Laboratory", (Way,), parts, name="laboratory")
    assert "laboratory" not in WAYS


@pytest.mark.parametrize(("name", "why"), [("prolific", "already"), ("a" * 11, "letters")])
def test_a_name_that_is_taken_or_too_long_is_refused(name, why):
    with pytest.raises(TypeError, match=why):
        type("Laboratory", (Way,), PARTS, name=name)


def test_a_new_way_is_a_choice_reads_its_people_and_pays_nobody():
    class Laboratory(Way, name="laboratory"):
        title, place = PARTS["title"], PARTS["place"]
        panel = Panel("badge", re.compile("[0-9]{4}"))

    assert way_choices()[-1] == ("laboratory", "a laboratory")
    assert "laboratory" in dict(CampaignForm.base_fields["way"].choices)
    campaign = Campaign(way="laboratory")
    assert campaign.way_in.panel.read({"badge": "0042"}) == Arrival("0042")
    assert campaign.way_in.panel.read({"badge": "x"}) is None
    assert not campaign.way_in.can_pay
    assert campaign.approval_delay is None


def test_the_panels_with_an_api_can_pay():
    assert {way.name for way in WAYS.values() if way.can_pay} == {"prolific", "mturk"}
