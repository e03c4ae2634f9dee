"""Every page of a site in use, read by axe in a language whose words take 40 % more room."""

import pytest
from django.utils import timezone, translation

from core.accounts.models import User
from tests.browser.conftest import NARROW, WIDE, audit, visit
from tests.support.demo_site import PAGES, demo_site

pytestmark = pytest.mark.nightly("looks")

MORE = 0.4


def longer(words: str) -> str:
    """The words and 40 % more letters, in words of the usual length."""
    extra = max(2, round(len(words) * MORE))
    return words and words + " " + ("łöngęř " * extra)[:extra].strip()


@pytest.fixture
def in_longer_words(monkeypatch):
    """From now on every page is in that language."""

    def switch() -> None:
        for name in ("gettext", "pgettext", "ngettext"):
            known = getattr(translation._trans, name)
            longest = lambda *args, known=known: longer(known(*args))  # noqa: E731
            monkeypatch.setattr(translation._trans, name, longest)

    return switch


@pytest.mark.django_db(transaction=True)
def test_pages_of_a_site_in_use(open_page, settings, in_longer_words):
    """Narrow and dark; in light and with room the tests of each page look at all but reports."""
    settings.DEBUG = True  # the style guide
    places, faults = demo_site(timezone.now()), []

    def look(as_seen: tuple[str, int], pages_of: dict[str, dict[str, str]] = PAGES) -> None:
        for email, pages in pages_of.items():
            user = User.objects.filter(email=email).first()
            page = open_page(user, reduced_motion="reduce")
            for path in pages.values():
                visit(page, path.format(**places))
                try:
                    audit(page, as_seen)
                except AssertionError as fault:
                    faults.append(str(fault))

    owner = "owner@example.com"
    look(WIDE, {owner: {"reports": PAGES[owner]["reports"]}})
    in_longer_words()
    look(NARROW)
    assert not faults, "\n".join(faults)
