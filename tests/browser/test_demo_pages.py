"""Every page of a site in use: read by axe, and in a language whose words take 40 % more room."""

import pytest
from django.utils import timezone, translation

from tests.browser.conftest import PATIENCE, audit, visit, watch
from tests.support.demo_site import PAGES, demo_site, session_cookie

MORE = 0.4


def longer(words: str) -> str:
    """The words and 40 % more letters, in words of the usual length."""
    extra = max(2, round(len(words) * MORE))
    return words and words + " " + ("łöngęř " * extra)[:extra].strip()


@pytest.fixture(params=[False, True], ids=["english", "longer"])
def words(request, monkeypatch):
    if request.param:
        for name in ("gettext", "pgettext", "ngettext"):
            known = getattr(translation._trans, name)
            longest = lambda *args, known=known: longer(known(*args))  # noqa: E731
            monkeypatch.setattr(translation._trans, name, longest)


@pytest.mark.django_db(transaction=True)
def test_pages_of_a_site_in_use(chromium, live_server, settings, words, problems):
    settings.DEBUG = True  # the style guide
    places, faults = demo_site(timezone.now()), []
    for email, pages in PAGES.items():
        context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        watch(context, live_server.url, problems)
        if email:
            context.add_cookies([session_cookie(settings, live_server.url, email)])
        page = context.new_page()
        for path in pages.values():
            visit(page, path.format(**places))
            try:
                audit(page)
            except AssertionError as fault:
                faults.append(str(fault))
        context.close()
    assert not problems
    assert not faults, "\n".join(faults)
