"""Many people come to one campaign at the same time."""

import pytest

from dynabench.campaigns import place_services
from dynabench.campaigns.models import LedgerRow, Place
from dynabench.campaigns.ways.panels import Arrival
from tests.support.campaigns import open_campaign
from tests.support.factories import TaskFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_forty_people_ten_get_in(at_once):
    """Lock: the campaign, in `hold_place`; also where the money ends before the places."""
    task = TaskFactory(code="nli")
    for number in races(6):
        limit = {"places": 10} if number % 2 else {"places": 40, "budget": 1550}
        campaign = open_campaign(task, slug=f"study-{number}", **limit)
        places = at_once(lambda one: place_services.hold_place(campaign=one), [campaign] * 40)
        assert sum(place is not None for place in places) == 10
        campaign.refresh_from_db()
        assert campaign.state == "full"


def test_one_person_in_two_browsers_takes_one_place_and_is_paid_once(at_once):
    """Lock: the campaign, in `take_place` and `submit`."""
    task = TaskFactory(code="nli")
    for number in races(6):
        campaign = open_campaign(task, slug=f"study-{number}", each=0, places=9)
        consent, arrival = campaign.consents.get(), Arrival(f"person-{number}")
        held = [place_services.hold_place(campaign=campaign) for _ in range(4)]

        def agree(place, consent=consent, arrival=arrival):
            taken, _secret = place_services.take_place(
                place=place, consent=consent, arrival=arrival, user=None
            )
            return taken.pk

        assert len(set(at_once(agree, held))) == 1
        place = Place.objects.get(campaign=campaign)
        at_once(lambda one: place_services.submit(place=one), [place] * 4)
        assert LedgerRow.objects.filter(place=place).count() == 1
