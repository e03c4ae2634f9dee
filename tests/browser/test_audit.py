"""What `audit` finds on pages of which it knows most already."""

import pytest

from tests.browser.conftest import audit, visit

FAINT = "text => { for (const one of document.querySelectorAll('main p')) one.style.color = text; }"


def test_a_colour_that_is_new_on_a_known_page_is_checked(page):
    visit(page, "/account/")
    audit(page)
    audit(page)
    page.evaluate(FAINT, "#999")
    with pytest.raises(AssertionError, match="color-contrast"):
        audit(page)
    page.evaluate(FAINT, "")
    audit(page)
