"""The owner's pages of trainings in a browser: axe, focus, polling."""

import pytest
from playwright.sync_api import expect

from evaluation.isolation.queue import leases
from evaluation.models import TrainingRun
from tasks.models import TaskMember
from tests.browser.conftest import audit, visit
from tests.support.training_data import nli_task, release
from tests.support.training_pages import REPORT


@pytest.fixture
def task(alice, tmp_path):
    task = nli_task(tmp_path)
    TaskMember.objects.create(task=task, user=alice, role="owner")
    release(task.rounds.get(), (4, 2, 2))
    return task


def test_pages_of_trainings(page, task):
    visit(page, "/own/nli/trainings/")
    page.get_by_label("Random seed").fill("")
    page.locator("#start-training").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Random seed").fill("0")
    page.locator("#start-training").click()
    expect(page.locator("#training-state")).to_be_focused()
    audit(page)
    run = leases.claim_job(TrainingRun, TrainingRun.objects.get().pk)
    leases.write_heartbeat(run, 0.5, "epoch 3")
    expect(page.get_by_role("heading", name="Running")).to_be_focused()
    audit(page)
    leases.finish_job(run, report=REPORT)
    expect(page.locator("#use-as-target")).to_be_visible()
    expect(page.locator("#training-state")).to_be_focused()
    audit(page)
    page.locator("[name=name]").fill("tiny")
    page.locator("#use-as-target").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.locator("[name=name]").fill("stronger")
    page.locator("#use-as-target").click()
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator(".messages")).to_be_visible()
    audit(page)
    visit(page, "/own/nli/trainings/")
    audit(page)


def test_a_failed_training(page, task):
    TrainingRun.objects.create(
        task=task, options={"weights": {"round1": 1}}, state="failed", error="There are no rows."
    )
    visit(page, f"/own/nli/trainings/{TrainingRun.objects.get().pk}/")
    audit(page)


def test_without_javascript(open_page, alice, task):
    page = open_page(alice, java_script_enabled=False)
    page.goto("/own/nli/trainings/")
    page.locator("#start-training").click()
    expect(page.get_by_role("link", name="Refresh")).to_be_visible()
    run = leases.claim_job(TrainingRun, TrainingRun.objects.get().pk)
    leases.write_heartbeat(run, 0.5, "epoch 3")
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_text("epoch 3")).to_be_visible()
    leases.finish_job(run, report=REPORT)
    page.get_by_role("link", name="Refresh").click()
    page.locator("#use-as-target").click()
    expect(page.locator(".messages")).to_be_visible()
