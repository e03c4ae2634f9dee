"""What is stored about people stands in the register; a panel's id is in no log and no export."""

import logging
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.checks import run_checks

from core.accounts.models import Annotator, CountedPerson, LogEntry, User
from dynabench.campaigns.models import Campaign
from tests.support.campaigns import PANEL_IDS, come, open_campaign, take_part
from tests.support.judging import write

REGISTER = Path("docs/privacy.md")
PERSONAL = {
    *("email", "email_address", "address", "ip", "user_agent", "pseudonym", "sealed_id", "id_hash"),
}
"""Names of fields that tell of a person without pointing at one."""


def test_the_register_names_every_table_about_a_person():
    """A new one fails here: write in docs/privacy.md what it holds, why, and until when."""
    there = {
        model._meta.db_table
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.concrete
        and (
            field.name in PERSONAL
            or (field.is_relation and field.related_model in (User, Annotator, CountedPerson))
        )
    }
    tables = REGISTER.read_text(encoding="utf-8").partition("## Tables")[2]
    named = re.findall(r"`(\w+)`", tables)
    assert sorted(named) == sorted(there)


@pytest.mark.parametrize("way", ["link", "prolific", "mturk"])
def test_no_log_and_no_export_holds_a_panel_id(nli, as_alice, alice, way, caplog):
    caplog.set_level(logging.DEBUG)
    nli.task.members.create(user=alice, role="owner")
    campaign = open_campaign(nli.task, way=way)
    client, _page = take_part(campaign)
    place = campaign.all_places.get()
    write(nli, place.annotator.user)
    come(campaign, client)
    client.get("/c/study/nowhere/", PANEL_IDS[way])
    Campaign.objects.update(state="closed")
    come(campaign)
    told = caplog.text + str(list(LogEntry.objects.values_list("target", "data")))
    for path in (
        "rounds/1/export.jsonl",
        "campaigns/study/ledger.csv",
        "campaigns/study/taxes.csv",
    ):
        response = as_alice.get(f"/own/nli/{path}")
        assert response.status_code == 200
        told += response.getvalue().decode() if response.streaming else response.text
    assert place.annotator.pseudonym in told
    assert not [one for one in PANEL_IDS[way].values() if one in told]


def test_the_operators_text_is_linked_and_shown(client, nli, settings, tmp_path):
    assert 'href="/privacy/"' in client.get("/").text
    assert client.get("/privacy/").status_code == 200
    settings.PRIVACY_TEXT = str(tmp_path / "text.md")
    assert "dynabench.E005" in [one.id for one in run_checks()]
    (tmp_path / "text.md").write_text("# Responsible\n\nThe *institute*.", encoding="utf-8")
    assert "<em>institute</em>" in client.get("/privacy/").text
    panel, _page = take_part(open_campaign(nli.task))
    assert panel.get("/privacy/").status_code == 200
