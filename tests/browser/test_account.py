"""Tokens in the browser, and the page of the API under our policy."""

from playwright.sync_api import expect

from tests.browser.conftest import audit, visit
from tests.support.factories import PASSWORD


def give_password(page):
    """As one does who makes a token later than a few minutes after signing in."""
    visit(page, "/accounts/reauthenticate/")
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("form").filter(has=page.get_by_label("Password")).get_by_role("button").click()


def test_a_token_is_made_copied_and_revoked(open_page, alice):
    page = open_page(alice, permissions=["clipboard-read", "clipboard-write"])
    give_password(page)
    visit(page, "/account/tokens/")
    audit(page)
    page.get_by_role("button", name="Make it").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Name").fill("laptop")
    page.locator("[name=scopes][value=read]").check()
    page.locator("[name=days]").fill("3")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name="laptop is made")).to_be_focused()
    audit(page)
    page.get_by_role("button", name="Copy the key").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    key = page.evaluate("navigator.clipboard.readText()")
    assert key == page.locator("#key").inner_text()
    visit(page, "/account/")
    expect(page.get_by_text("laptop ends within two weeks")).to_be_visible()
    audit(page)
    visit(page, "/account/tokens/")
    audit(page)
    page.get_by_role("link", name="Revoke laptop").click()
    expect(page.get_by_role("heading", name="Revoke laptop?")).to_be_visible()
    audit(page)
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_text("laptop is revoked.")).to_be_visible()


def test_without_javascript_the_key_is_there_to_select(open_page, alice):
    page = open_page(alice, java_script_enabled=False)
    give_password(page)
    visit(page, "/account/tokens/")
    page.get_by_label("Name").fill("laptop")
    page.locator("[name=scopes][value=read]").check()
    page.get_by_role("button", name="Make it").click()
    assert page.locator("#key").inner_text().startswith("dyna_")
    expect(page.get_by_role("button", name="Copy the key")).to_be_hidden()


def test_the_page_of_the_api_works_under_our_policy(page):
    """What breaks the policy, or comes from elsewhere, is a problem that fails the test."""
    visit(page, "/api/v1/docs/")
    expect(page.get_by_role("heading", name="The API")).to_be_visible()
    me = page.locator("#operations-me-me_get")
    expect(page.locator(".opblock").first).to_be_visible()
    for _ in range(100):  # so many operations are drawn only where one looks
        if me.is_visible():
            break
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(50)
    me.get_by_role("button").first.click()
    me.get_by_role("button", name="Try it out").click()
    execute = me.get_by_role("button", name="Execute")
    status = me.locator(".live-responses-table .response-col_status").last
    execute.click()
    expect(status).to_contain_text("200")
    page.context.clear_cookies()
    execute.click()
    expect(status).to_contain_text("401")
