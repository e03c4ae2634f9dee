"""Comparing two models, models over rounds, and groups of tasks: all states under axe."""

import pytest
from playwright.sync_api import expect

from dynabench.communities.models import Community, CommunityTask
from leaderboard.snapshots.services import take_snapshot
from tests.browser.conftest import audit, make_round, visit
from tests.support.boards import measured
from tests.support.compared_models import answered, rows_of
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory

BOARD = "/t/nli/leaderboard/"


@pytest.fixture
def task(settings, tmp_path):
    """Two models on the sets of two rounds, one of which people may read."""
    settings.MEDIA_ROOT = tmp_path / "media"
    round = make_round("nli")
    later = RoundFactory(task=round.task, number=2, state="closed")
    versions = [
        set_version(round.task, "round-1", rows=rows_of(120), round=round, may_leave=True),
        set_version(round.task, "round-2", size=40, round=later),
    ]
    for name, step in (("Ada", 4), ("Ben", 3)):
        model = accepted_model(round.task, name=name, is_published=True)
        answered(model, versions[0], lambda n, step=step: n % step)
        measured(model, versions[1], 1 / step)
    return round.task


def test_two_models_beside_each_other(page, alice, task):
    visit(page, f"{BOARD}compare/")
    audit(page)
    page.get_by_label("Second model").select_option("Ada")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Second model").select_option("Ben")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h2#finding")).to_contain_text("Ben")
    page.locator("#set").select_option("round-1")
    page.locator("#choose-set button").click()
    expect(page.locator("#set")).to_have_value("round-1")
    expect(page.get_by_text("Hypothesis 3.", exact=True)).to_be_visible()
    audit(page)
    page.locator("a[rel=next]").click()
    expect(page.locator("a[rel=prev]")).to_be_visible()


def test_models_over_rounds(page, alice, task):
    visit(page, f"{BOARD}rounds/")
    expect(
        page.locator("#chart-people-and-models svg.figure, #chart-catch-rate svg.figure").first
    ).to_be_visible()
    audit(page)


def test_a_community(page, alice, task):
    made = Community.objects.create(slug="dadc", name="DADC", text="We *meet*.", is_listed=True)
    CommunityTask.objects.create(community=made, task=task, state="in")
    take_snapshot(task=task, actor=None)
    visit(page, "/")
    audit(page)
    page.get_by_role("link", name="DADC").click()
    page.wait_for_url("**/communities/dadc/")
    audit(page)
