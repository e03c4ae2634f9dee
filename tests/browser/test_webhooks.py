"""Webhooks in the browser: made, tested, read, given a new secret, switched off, deleted."""

from django.utils import timezone
from playwright.sync_api import expect

from dynabench.webhooks.models import Delivery, Webhook
from tests.browser.conftest import audit, make_round, visit


def test_a_webhook_is_made_tested_and_deleted(page, alice):
    make_round("nli")
    visit(page, "/account/webhooks/")
    audit(page)
    page.locator("#id_url").fill("http://example.org")
    page.locator("[value='round.closed']").check()
    page.locator("#create-webhook").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.locator("#id_url").fill("https://example.org/told")
    page.locator("#create-webhook").click()
    expect(page.locator("#secret-title")).to_be_focused()
    audit(page)
    page.locator("#to-webhook").click()
    page.locator("form[action$='/test/'] button").click()
    expect(page.locator(".messages")).to_be_visible()
    Delivery.objects.update(state="given_up", tries=6, status=500, error="It answered 500.")
    hook, now = Webhook.objects.get(), timezone.now()
    for state, tries in (("sent", 1), ("waiting", 2), ("withheld", 0)):
        Delivery.objects.create(
            webhook=hook, event="round.closed", key=state, state=state, tries=tries,
            data={"url": "http://localhost/t/nli/"}, happened_at=now, due_at=now,
            error="The receiver did not answer in time." if state == "waiting" else "",
        )  # fmt: skip
    page.reload()
    audit(page)
    # That of its making, and the one that was asked for.
    page.get_by_role("button", name="Send again webhook.test").first.click()
    expect(page.locator(".messages")).to_be_visible()
    page.locator("#new-secret").click()
    audit(page)
    page.locator("form[action$='/secret/'] button").click()
    expect(page.locator("#secret-title")).to_be_focused()
    audit(page)
    page.locator("#to-webhook").click()
    page.locator("form[action$='/switch/'] button").click()
    expect(page.locator(".messages")).to_be_visible()
    audit(page)
    visit(page, "/account/webhooks/")
    audit(page)
    page.get_by_role("link", name="https://example.org/told").click()
    page.locator("#to-delete").click()
    expect(page.locator("main form button")).to_be_visible()
    audit(page)
    page.locator("#delete-webhook").click()
    expect(page.locator(".messages")).to_be_visible()
