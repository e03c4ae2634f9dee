"""What pages look like: compared with kept pictures, where browser and fonts are pinned (.ci/run).

The rows come from a short round of simulated people (tests/support/demo.py) under a clock that
stands still: the whole demo, with its trainings, takes minutes.
After a wanted change: ./test --update pictures
"""

import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from PIL import Image, ImageChops

from core.accounts.models import User
from scripts.chromium import CHROMIUM
from tests.browser.conftest import ARGUMENTS, PATIENCE, sign_in, visit, watch
from tests.support.demo_site import PAGES, demo_site
from tests.support.snapshots import UPDATES

KEPT = Path(__file__).parent / "pictures"
pytestmark = pytest.mark.skipif(
    not UPDATES and not os.environ.get("COMPARE_PICTURES"),
    reason="compares pictures where browser and fonts are pinned: .ci/run",
)
DEJAVU = "/usr/share/fonts/truetype/dejavu"  # Debian's fonts-dejavu-core
NOW = datetime(2026, 3, 16, 12, tzinfo=UTC)
LOOKS = {"wide": ("light", 1280), "narrow": ("dark", 390)}
SCALE = 0.5
DIFFERENT = 40  # of 255, in one of the colours of a pixel
MOST = 0.002  # of the pixels, when letters are smoothed in another way


@pytest.fixture
def clock(settings):
    settings.DEBUG = True  # the style guide
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


@pytest.fixture
def places(live_server, clock):
    return demo_site(NOW)


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
    if UPDATES:
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
    other = []
    for look, (scheme, width) in LOOKS.items():
        for email, pages in PAGES.items():
            page = signed_in(browser, live_server.url, email, scheme, width, problems)
            for name, path in pages.items():
                visit(page, path.format(**places))
                picture, kept = taken(page), KEPT / f"{name}-{look}.png"
                if UPDATES:
                    picture.save(kept, optimize=True)
                elif not is_like(picture, kept):
                    picture.save(settings.HOME / kept.name)
                    other.append(kept.name)
    assert not problems
    assert not other, f"These look different; {settings.HOME} has what they look like now."


def signed_in(browser, url, email, scheme, width, problems):
    """A page of that person, or of a stranger."""
    context = browser.new_context(
        base_url=url, color_scheme=scheme, viewport={"width": width, "height": 800},
        device_scale_factor=SCALE, reduced_motion="reduce", locale="en-GB", timezone_id="UTC",
    )  # fmt: skip
    context.set_default_timeout(PATIENCE)
    watch(context, url, problems)
    if email:
        sign_in(context, url, User.objects.get(email=email))
    return context.new_page()
