"""The admin. Campaigns: what its list says, and the buttons, which are the services'."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.accounts.models import LogEntry
from tests.support.campaigns import agree, open_campaign, paid_place, take_part
from tests.web.admin.conftest import ROLES, Role, change_url, list_url, sign_in

LIST = list_url("campaigns_campaign")


@pytest.mark.parametrize("role", ROLES)
def test_owners_move_a_campaign_by_button(people, nli, role):
    client = sign_in(people[role])
    campaign = open_campaign(nli.task, state="draft")
    url = reverse("admin:campaigns_campaign_state", args=[campaign.pk])
    is_owner = role == Role.OWNER
    for ethics, name, state in (
        ("", "Ada", "draft"),
        ("Approved.", "", "draft"),
        ("Approved.", "Ada", "open"),
    ):
        campaign.ethics = ethics
        campaign.save()
        response = client.post(url, {"state": "open", "ethics_name": name})
        campaign.refresh_from_db()
        assert campaign.state == (state if is_owner else "draft")
        assert (response.status_code == 302) == is_owner
    assert client.post(url, {"state": "full"}).status_code == (302 if is_owner else 404)
    if is_owner:
        page = client.get(change_url("campaigns_campaign", campaign))
        assert [one["state"] for one in page.context["steps"]] == ["paused", "closed"]
        assert LogEntry.objects.get(action="campaign.open").actor == people[role]


def test_the_list_says_what_was_spent_and_names_no_panel_id(owner, nli):
    campaign = open_campaign(nli.task, places=9, budget=10_000, fee_percent=10)
    take_part(campaign)
    paid_place(campaign, 1)

    def count(url):
        with CaptureQueriesContext(connection) as found:
            page = owner.get(url)
        assert "panel-person-1" not in page.text
        return len(found), page.text

    urls = [f"{LIST}?q=study&state__exact=open", change_url("campaigns_campaign", campaign)]
    owner.get(urls[1])  # kinds of objects are asked for once
    few = [count(url) for url in urls]
    assert "2 of 9" in few[0][1]
    assert "2.77 EUR" in few[0][1]  # 150 and 101, with the fee
    for number in range(3):
        agree(open_campaign(nli.task, slug=f"study-{number}"), f"p{number}")
        paid_place(campaign, 2 + number)
    assert [count(url)[0] for url in urls] == [found for found, _text in few]
