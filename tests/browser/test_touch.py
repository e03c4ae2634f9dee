"""What a finger hits on a phone: each link, button and field is 44 px wide and high."""

import pytest
from django.utils import timezone

from core.accounts.models import User
from tests.browser.conftest import visit
from tests.support.demo_site import OWN, OWNER, PERSON, STRANGER, TASK, demo_site

pytestmark = pytest.mark.nightly("looks")

FINGER = 44
PHONE = {"width": 390, "height": 844}
# Links in sentences may be as high as their line (WCAG 2.5.8), those of charts as their mark: the
# table below has them too. A box for ticks is hit by its label.
SMALL_TARGETS = """finger => {
    const small = [];
    const targets = "a[href], button, summary, select, textarea, input:not([type=hidden])";
    for (const one of document.querySelectorAll(targets)) {
        if (one.disabled || one.matches(".visually-hidden, .skip, svg *")) continue;
        if (!one.checkVisibility()) continue;
        let {width, height} = one.getBoundingClientRect();
        if (width <= 1 || height <= 1) continue;
        for (const label of one.labels ?? []) {
            if (!one.matches("[type=checkbox], [type=radio]")) continue;
            width = Math.max(width, label.getBoundingClientRect().width);
            height = Math.max(height, label.getBoundingClientRect().height);
        }
        const block = one.closest("p, li, dd, dt, td, th, div");
        const isInSentence = getComputedStyle(one).display === "inline"
            && block.innerText.trim().length > one.innerText.trim().length + 3;
        if (!isInSentence && Math.min(width, height) < finger - 0.5)
            small.push(`${one.outerHTML.slice(0, 120)}: ${width} x ${height}`);
    }
    return small;
}"""
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
