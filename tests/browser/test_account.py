"""Tokens in the browser, and the page of the API under our policy."""

from allauth.mfa.models import Authenticator
from playwright.sync_api import expect

from core.accounts.models import confirm_address
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
    page.locator("#create-token").click()
    expect(page.locator(".error-summary")).to_be_focused()
    audit(page)
    page.get_by_label("Name").fill("laptop")
    page.locator("[name=scopes][value=read]").check()
    page.locator("[name=days]").fill("3")
    page.locator("#create-token").click()
    expect(page.locator("#token-title")).to_be_focused()
    audit(page)
    page.locator("[data-copy=key]").click()
    expect(page.locator("#status")).not_to_be_empty()
    key = page.evaluate("navigator.clipboard.readText()")
    assert key == page.locator("#key").inner_text()
    visit(page, "/account/")
    expect(page.locator(".notice.warn", has_text="laptop")).to_be_visible()
    audit(page)
    visit(page, "/account/tokens/")
    audit(page)
    page.get_by_role("link", name="Revoke laptop").click()
    expect(page.get_by_role("heading", name="laptop")).to_be_visible()
    audit(page)
    page.locator("#revoke-token").click()
    expect(page.locator(".messages", has_text="laptop")).to_be_visible()


def test_a_passkey_is_added_confirms_and_signs_in(open_page, alice):
    confirm_address(alice)
    page = open_page(alice)
    give_password(page)
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
    options |= {"hasUserVerification": True, "isUserVerified": True}
    device.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    visit(page, "/accounts/2fa/webauthn/add/")
    audit(page)
    page.locator("#id_passwordless").check()
    page.locator("#mfa_webauthn_add").click()
    expect(page.locator("#mfa_webauthn_add")).to_have_count(0)
    assert Authenticator.objects.filter(user=alice, type="webauthn").count() == 1
    visit(page, "/accounts/2fa/webauthn/reauthenticate/")
    audit(page)
    page.locator("#mfa_webauthn_reauthenticate").click()
    page.wait_for_url(lambda url: "reauthenticate" not in url)
    page.context.clear_cookies()
    visit(page, "/accounts/login/")
    page.get_by_label("Email").fill(alice.email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.locator("main form button").first.click()
    page.wait_for_url("**/2fa/authenticate/**")
    audit(page)
    page.locator("#mfa_webauthn_authenticate").click()
    page.wait_for_url(lambda url: "authenticate" not in url)
    visit(page, "/account/")
    expect(page.locator("#switch-ranking")).to_be_visible()


def test_without_javascript_the_key_is_there_to_select(open_page, alice):
    page = open_page(alice, java_script_enabled=False)
    give_password(page)
    visit(page, "/account/tokens/")
    page.get_by_label("Name").fill("laptop")
    page.locator("[name=scopes][value=read]").check()
    page.locator("#create-token").click()
    assert page.locator("#key").inner_text().startswith("dyna_")
    expect(page.locator("[data-copy=key]")).to_be_hidden()


def test_the_page_of_the_api_works_under_our_policy(page):
    """What breaks the policy, or comes from elsewhere, is a problem that fails the test."""
    visit(page, "/api/v1/docs/")
    audit(page)
    page.locator("main .actions a").click()
    me = page.locator("#operations-me-me_get")
    expect(page.locator(".opblock").first).to_be_visible()
    for _ in range(100):  # so many operations are drawn only where one looks
        if me.is_visible():
            break
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(50)
    me.get_by_role("button").first.click()
    me.locator(".try-out__btn").click()
    execute = me.get_by_role("button", name="Execute")
    status = me.locator(".live-responses-table .response-col_status").last
    execute.click()
    expect(status).to_contain_text("200")
    page.context.clear_cookies()
    execute.click()
    expect(status).to_contain_text("401")
