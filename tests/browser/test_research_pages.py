"""Pages for researchers: read by axe in both themes, hit by a finger, and mirrored in Arabic."""

import pytest

from dynabench.studies import power_services
from evaluation.scoring.ruler import prediction
from tests.browser.conftest import FINGER, PHONE, SMALL_TARGETS, audit, visit
from tests.support.research_pages import WORLDS

pytestmark = pytest.mark.nightly("looks")

ROOM = "[document.documentElement.dir, document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(autouse=True)
def _small_world(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    settings.NEW_TASKS = "everybody"
    # The fit and the simulation have tests of their own.
    monkeypatch.setattr(prediction, "MAX_FOLDS", 4)
    monkeypatch.setattr(power_services, "MAX_STUDIES", 20)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_pages_of_researchers(open_page, make):
    person, paths = make()
    page = open_page(person)
    # In Arabic, because a page that is whole there at 390 px is so in all languages.
    phone = open_page(person, has_touch=True, is_mobile=True, viewport=PHONE, locale="ar")
    small = []
    for path in paths.values():
        visit(page, path)
        audit(page)
        visit(phone, path)
        direction, width, room = phone.evaluate(ROOM)
        assert (direction, width <= room) == ("rtl", True), f"{path}: {width} > {room}"
        small += [f"{path}: {one}" for one in phone.evaluate(SMALL_TARGETS, FINGER)]
    assert not small, "\n".join(small)
