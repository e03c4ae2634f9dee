"""What a finger hits on a phone: each link, button and field is 44 px wide and high."""

import pytest
from django.utils import timezone

from core.accounts.models import User
from tests.browser.conftest import FINGER, PHONE, SMALL_TARGETS, visit
from tests.support.demo_site import OWN, OWNER, PERSON, STRANGER, TASK, demo_site

pytestmark = pytest.mark.nightly("looks")

STRANGERS_PAGES = [
    *STRANGER.values(), "/accounts/signup/", "/accounts/password/reset/", f"{TASK}/try/",
]  # fmt: skip
PERSONS_PAGES = [
    *PERSON.values(), "/", "/help/", "/help/numbers/", "/docs/", "/status/", "/leaderboards/",
    "/communities/", "/new/", "/new/study/", "/new/template/nli/", "/me/news/", "/me/models/",
    "/me/teams/",
    "/me/data/", "/me/data/delete/", "/me/assignments/", "/account/tokens/", "/account/webhooks/",
    "/accounts/email/", "/accounts/2fa/", "/accounts/sessions/", "/accounts/password/change/",
    "/attempt/{example}/retract/", f"{TASK}/catches/", f"{TASK}/submit/",
    f"{TASK}/submit/?kind=predictions", f"{TASK}/leaderboard/rounds/",
    f"{TASK}/leaderboard/compare/", f"{TASK}/leaderboard/snapshots/", f"{TASK}/models/",
]  # fmt: skip
OWNERS_PAGES = [*OWNER.values(), "/manage/"]
OWNERS_PARTS = [
    "rounds/new/", "rounds/1/policy/", "rounds/1/arms/", "rounds/1/contexts/all/", "targets/",
    "config/", "log/", "campaigns/", "campaigns/new/", "evaluation-sets/", "trainings/",
    "adversaries/", "studies/",
]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_finger_hits_everything(open_page, settings):
    settings.DEBUG = True  # the style guide
    places, small = demo_site(timezone.now()), []
    owners_pages = OWNERS_PAGES + [f"{OWN}/{part}" for part in OWNERS_PARTS]
    pages_of = {"": STRANGERS_PAGES, "person@example.com": PERSONS_PAGES}
    for email, paths in (pages_of | {"owner@example.com": owners_pages}).items():
        user = User.objects.filter(email=email).first()
        page = open_page(user, has_touch=True, is_mobile=True, viewport=PHONE)
        for path in paths:
            visit(page, path.format(**places))
            small += [f"{path}: {one}" for one in page.evaluate(SMALL_TARGETS, FINGER)]
    assert not small, "\n".join(small)
