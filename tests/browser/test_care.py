"""Time with a harmful text in view, as the browser reports it; and the page of breaks and help."""

import re

from playwright.sync_api import expect

from annotation.models import GatePass
from tests.browser.conftest import assign, audit, make_round, visit


def test_seconds_in_view_are_reported(page, alice):
    assign(alice, make_round("hate-speech"))
    page.clock.install()
    visit(page, "/t/hate-speech/write/")
    GatePass.objects.update(at="2020-01-01T00:00Z")  # the server's clock would allow more
    with page.expect_response("**/care/seen/") as told:
        page.clock.run_for(15_500)
    assert told.value.status == 204
    page.locator("a[href$='/care/']").click()
    expect(page).to_have_url(re.compile("/t/hate-speech/care/$"))
    audit(page)
    assert GatePass.objects.get().seconds == 15
