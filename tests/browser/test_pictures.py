"""What pages look like: compared with kept pictures, where browser and fonts are pinned (.ci/run).

The rows come from a short round of simulated people (tests/support/demo.py) under a clock that
stands still: the whole demo, with its trainings, takes minutes.
After a wanted change: UPDATE_PICTURES=1 pytest tests/browser/test_pictures.py
"""

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import time_machine
from django.test import Client
from PIL import Image, ImageChops

from annotation.assignments.services import assign_next
from annotation.attempts.services import begin_attempt, settle
from annotation.models import Example
from dynabench.accounts.models import User
from dynabench.accounts.services import annotator_of
from evaluation.models import Submission
from tasks.models import Round, TaskMember
from tests.browser.conftest import ARGUMENTS, PATIENCE, visit, watch
from tests.conftest import CHROMIUM
from tests.support.boards import fill_board
from tests.support.demo import played_round
from tests.support.factories import ContextFactory, RoundFactory, UserFactory, scripted_target
from tests.support.judging import write

KEPT = Path(__file__).parent / "pictures"
UPDATE = bool(os.environ.get("UPDATE_PICTURES"))
pytestmark = pytest.mark.skipif(
    not UPDATE and not os.environ.get("COMPARE_PICTURES"),
    reason="compares pictures where browser and fonts are pinned: .ci/run",
)
DEJAVU = "/usr/share/fonts/truetype/dejavu"  # Debian's fonts-dejavu-core
NOW = datetime(2026, 3, 16, 12, tzinfo=UTC)
TASK = "/t/demo-simulated"
OWN = "/own/demo-simulated"
STRANGER = {"home": "/", "leaderboards": "/leaderboards/", "sign-in": "/accounts/login/"}
PERSON = {
    "styleguide": "/styleguide/",
    "task": f"{TASK}/",
    "write": f"{TASK}/write/",
    "judge": f"{TASK}/judge/",
    "result": "/attempt/{example}/",
    "board": f"{TASK}/leaderboard/",
    "rounds": f"{TASK}/rounds/",
    "data": f"{TASK}/data/",
    "people": f"{TASK}/people/",
    "model": "/m/{model}/",
    "my-work": "/me/",
    "account": "/account/",
}
OWNER = {
    "dashboard": f"{OWN}/?round=1",
    "own-rounds": f"{OWN}/rounds/",
    "review": f"{OWN}/review/",
    "reports": f"{OWN}/reports/",
    "own-people": f"{OWN}/annotators/",
}
LOOKS = {"wide": ("light", 1280), "narrow": ("dark", 390)}
SCALE = 0.5
DIFFERENT = 40  # of 255, in one of the colours of a pixel
MOST = 0.002  # of the pixels, when letters are smoothed in another way


@pytest.fixture
def clock(settings):
    settings.SECRET_KEY = "pictures"  # who judges what depends on it
    settings.DEBUG = True  # the style guide
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


@pytest.fixture
def places(live_server, clock):
    """Uuids in addresses; a round of the demo, an open one, and models on a board."""
    person = UserFactory(email="person@example.com")
    round = played_round(seed=3, tries=60)
    task = round.task
    TaskMember.objects.create(
        task=task, user=UserFactory(email="owner@example.com"), role=TaskMember.Role.OWNER
    )
    for number, example in enumerate(round.examples.order_by("pk")):
        sent = NOW - timedelta(days=number % 9, minutes=number)
        Example.objects.filter(pk=example.pk).update(created_at=sent, shown_at=sent)
    following = RoundFactory(task=task, number=2)
    context = {"prompt": "We were at the mill on Monday."}
    ContextFactory(round=following, fields=context, metadata={"place": "mill"})
    scripted_target(following, "scripted-2", label="neutral")
    Round.objects.filter(pk=following.pk).update(opened_at=NOW)
    write(following, UserFactory(), text="The mill is loud.", label="negative")
    me = annotator_of(person)
    assignment = assign_next(annotator=me, round=following, want="current")
    inputs = {"text": "Nobody ever slept in the mill.", "label": assignment.goal}
    mine, _ = begin_attempt(annotator=me, assignment=assignment, key=uuid4(), inputs=inputs)
    settle(mine)
    fill_board(task, models=5)
    return {"example": mine.uuid, "model": Submission.objects.latest("queued_at").pk}


@pytest.fixture
def browser(chromium, tmp_path):
    """A browser that has the fonts of our pages, and DejaVu for what they lack."""
    fonts = tmp_path / "fonts.conf"
    fonts.write_text(f"<fontconfig><dir>{DEJAVU}</dir><cachedir>{tmp_path}</cachedir></fontconfig>")
    browser = chromium.browser_type.launch(
        executable_path=CHROMIUM,
        args=[*ARGUMENTS, "--font-render-hinting=none", "--disable-lcd-text"],
        env={**os.environ, "FONTCONFIG_FILE": str(fonts)},
    )
    version, kept = browser.version.split(".")[0], KEPT / "chromium"
    if UPDATE:
        kept.write_text(f"{version}\n")
    elif version != (known := kept.read_text().strip()):
        browser.close()
        pytest.skip(f"the kept pictures are of Chromium {known}, this is {version}")
    yield browser
    browser.close()


def taken(page) -> Image.Image:
    """A picture of the whole page in few colours, with its header where it begins."""
    page.evaluate("document.fonts.ready")
    page.evaluate("new Promise(done => requestAnimationFrame(() => done(scrollTo(0, 0))))")
    found = page.screenshot(full_page=True, animations="disabled", caret="hide")
    return Image.open(io.BytesIO(found)).convert("RGB").quantize(32, dither=Image.Dither.NONE)


def is_like(found: Image.Image, path: Path) -> bool:
    """Whether it looks like the kept picture."""
    if not path.exists():
        return False
    kept, found = Image.open(path).convert("RGB"), found.convert("RGB")
    if kept.size != found.size:
        return False
    red, green, blue = ImageChops.difference(kept, found).split()
    histogram = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
    return sum(histogram[DIFFERENT:]) <= MOST * kept.width * kept.height


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_pages_look_as_they_did(browser, live_server, settings, places, problems):
    sets = {"": STRANGER, "person@example.com": PERSON, "owner@example.com": OWNER}
    other = []
    for look, (scheme, width) in LOOKS.items():
        for email, pages in sets.items():
            page = signed_in(browser, live_server.url, settings, email, scheme, width, problems)
            for name, path in pages.items():
                visit(page, path.format(**places))
                picture, kept = taken(page), KEPT / f"{name}-{look}.png"
                if UPDATE:
                    picture.save(kept, optimize=True)
                elif not is_like(picture, kept):
                    picture.save(settings.HOME / kept.name)
                    other.append(kept.name)
    assert not problems
    assert not other, f"These look different; {settings.HOME} has what they look like now."


def signed_in(browser, url, settings, email, scheme, width, problems):
    """A page of that person, or of a stranger."""
    context = browser.new_context(
        base_url=url, color_scheme=scheme, viewport={"width": width, "height": 800},
        device_scale_factor=SCALE, reduced_motion="reduce", locale="en-GB", timezone_id="UTC",
    )  # fmt: skip
    context.set_default_timeout(PATIENCE)
    watch(context, url, problems)
    if email:
        client = Client()
        client.force_login(User.objects.get(email=email))
        key = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": key, "url": url}
        context.add_cookies([cookie])
    return context.new_page()
