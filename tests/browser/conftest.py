"""A real browser against a real server; what is wrong in its console fails the test."""

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.core.cache import cache
from django.test import Client, override_settings
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from annotation.context_picking import services
from annotation.models import Assignment
from core.accounts.services import get_annotator
from scripts.chromium import CHROMIUM
from tasks.targets.endpoints.scripted import ScriptedEndpoint
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--js-flags=--no-opt,--no-maglev",  # a page ends before it gains from what they compile
]  # fmt: skip
# Chromium and htmx write these lines themselves for what the pages show on purpose.
EXPECTED = re.compile(
    r"status of (401|409|410|422|429|503) "
    r"|net::ERR_INTERNET_DISCONNECTED|^htmx:(afterRequest|sendError),"  # without a network
    r"|^htmx:sendAbort,"  # of a page that is left while a draft is being saved
)
PATIENCE = 20_000  # ms; the machine may be busy
FAILED = pytest.StashKey[bool]()

PASSAGE = "Ada built the mill in 1840. The mill burned down. Ada left Tarn (in 1850)."
CONTEXTS = {
    "nli": {"premise": "Every Tuesday the ferry leaves at nine, and Jonas always misses it."},
    "qa": {"passage": PASSAGE},
    "sentiment": {"prompt": "The soup was warm and cheap."},
    "hate-speech": {"prompt": "The Zorbians moved in next door."},
}
START = PASSAGE.index("1840")
ANSWERS = {
    "nli": {
        "label": "entailment",
        "prob": {"entailment": 0.91, "neutral": 0.07, "contradiction": 0.02},
    },
    "qa": {"output": {"answer": "1840", "start": START, "end": START + 4}},
    "sentiment": {
        "label": "positive",
        "prob": {"positive": 0.6, "negative": 0.3, "neutral": 0.1},
    },
    "hate-speech": {"label": "not-hate", "prob": {"hate": 0.2, "not-hate": 0.8}},
}
# With these goals the answers above are wrong.
GOALS = {"nli": "neutral", "qa": "", "sentiment": "negative", "hate-speech": "hate"}


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if "tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="package")
def chromium():
    """One browser for this folder; what follows runs without its event loop."""
    expect.set_options(timeout=PATIENCE)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright's own loop runs in this thread, which Django takes for asynchronous code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package", autouse=True)
def _plain_static_names():
    """Between two tests, too: a page that is being closed may ask once more."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(STORAGES={**settings.STORAGES, "staticfiles": plain}):
        yield


@pytest.fixture(autouse=True)
def _clean():
    """No breaker or limit left over from another test."""
    cache.clear()


def watch(context: BrowserContext, origin: str, problems: list[str]) -> None:
    """Note errors of the console and the pages, broken policies, and requests to other hosts."""

    def console(message) -> None:
        if message.type in ("error", "warning") and not EXPECTED.search(message.text):
            problems.append(f"console: {message.text}")

    def request(request) -> None:
        if not request.url.startswith((origin, "data:", "blob:")):
            problems.append(f"request to another host: {request.url}")

    context.on("console", console)
    context.on("weberror", lambda error: problems.append(f"page error: {error.error}"))
    context.on("request", request)


Open = Callable[..., Page]


def sign_in(context: BrowserContext, url: str, user) -> None:
    """Give the browser a session of that person."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": url}])


@pytest.fixture
def problems() -> list[str]:
    """What `watch` noted; a test that means an error takes it out."""
    return []


@pytest.fixture
def open_page(chromium, live_server, settings, request, problems):
    """Open an empty page in a new browser context, signed in as `user` or nobody."""
    contexts: list[BrowserContext] = []

    def open_page(user=None, **options) -> Page:
        context = chromium.new_context(base_url=live_server.url, **options)
        context.set_default_timeout(PATIENCE)
        watch(context, live_server.url, problems)
        contexts.append(context)
        if user:
            sign_in(context, live_server.url, user)
        return context.new_page()

    yield open_page
    pages = [page for context in contexts for page in context.pages]
    if request.node.stash.get(FAILED, False):
        folder = settings.HOME / "screenshots"
        folder.mkdir(exist_ok=True)
        for number, page in enumerate(pages):
            name = re.sub(r"\W+", "-", request.node.name)
            page.screenshot(path=folder / f"{name}-{number}.png", full_page=True)
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


@pytest.fixture
def alice(transactional_db):
    return UserFactory(email="alice@example.com")


@pytest.fixture
def page(open_page, alice):
    """A page of a person who is signed in."""
    return open_page(alice)


def make_round(code: str, contexts: int = 1):
    """An open round of an official task, with the contexts of these tests."""
    round = RoundFactory(task=TaskFactory(code=code))
    (name, text), = CONTEXTS[code].items()  # fmt: skip
    ContextFactory(round=round, fields={name: text})
    for number in range(1, contexts):
        ContextFactory(round=round, fields={name: f"{text} It is day {number}."})
    return round


def assign(user, round, goal: str | None = None) -> Assignment:
    """What the person works on: the first context, with the goal that the target gets wrong."""
    annotator = get_annotator(user)
    code = round.task.code
    if round.task.is_sensitive:
        services.pass_gate(annotator=annotator, task=round.task)
    assignment = services.assign(annotator=annotator, round=round)
    assignment.context = round.contexts.earliest("pk")
    assignment.goal = GOALS[code] if goal is None else goal
    assignment.save()
    return assignment


TEXTS = {
    "nli": "Jonas has never been on the ferry.",
    "qa": "When did Ada leave Tarn?",
    "sentiment": "The soup was warm and cheap, once.",
    "hate-speech": "The Zorbians moved in next door, so we lock up now.",
}


def text_box(page: Page) -> Locator:
    return page.locator("#write-form textarea:not(.short)")


def answer_box(page: Page) -> Locator:
    return page.get_by_label("The answer", exact=True)


def submit_button(page: Page) -> Locator:
    return page.locator("#submit")


def next_button(page: Page) -> Locator:
    """It has the focus once the verdict is there."""
    return page.locator("#next")


def open_ideas(page: Page) -> None:
    """Unfold the help with writing."""
    page.locator("#ideas > summary").click()


FOOLED = re.compile(r"\bfooled")
"""The class of the verdict when a model was fooled."""


def verdict(page: Page) -> Locator:
    return page.locator("#verdict-title")


def fill(page: Page, code: str) -> None:
    """Fill the form of a task as a person with a mouse may."""
    text_box(page).fill(TEXTS[code])
    if code == "qa":
        answer_box(page).fill("1850")
    if code == "hate-speech":
        page.get_by_label("Animosity").check()
        page.get_by_label("a national group").check()


def submit(page: Page, code: str = "nli") -> None:
    """Fill the form, submit it and wait for the verdict."""
    fill(page, code)
    submit_button(page).click()
    expect(verdict(page)).to_be_visible()


def visit(page: Page, path: str) -> None:
    response = page.goto(path)
    assert response is not None
    assert response.ok, f"{path} answers {response.status}"


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Timers, which axe waits for, do not run where scripts are off.
# Contrast, which takes axe most of its time, is checked once for what is in the same place of pages
# in the same colours: `known` has hashes of these.
FAULTS = """async ([rules, known]) => {
    const isOff = matchMedia("(scripting: none)").matches;
    if (isOff) window.setTimeout = todo => Promise.resolve().then(todo);
    const seen = new Set(known.split(" ").map(Number)), unseen = new Map();
    const walk = (element, hash) => {
        if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) return;
        const style = getComputedStyle(element);
        const look = [
            element.tagName, element.className, element.matches(":disabled"), style.color,
            style.backgroundColor, style.backgroundImage, style.opacity, style.position,
            style.fontSize, style.fontWeight].join();
        for (let at = 0; at < look.length; at++)
            hash = Math.imul(hash ^ look.charCodeAt(at), 0x01000193);
        if (!seen.has(hash)) unseen.set(element, hash);
        for (const child of element.children) walk(child, hash);
    };
    walk(document.body, 0x811c9dc5);
    for (const element of unseen.keys()) element.setAttribute("data-unseen", "");
    axe.configure({rules: [{id: "color-contrast", selector: "[data-unseen]"}]});
    const found = await axe.run(document, {
        runOnly: {type: "tag", values: rules}, resultTypes: ["violations"], selectors: false,
        preload: !isOff,
    });
    for (const element of unseen.keys()) element.removeAttribute("data-unseen");
    const faults = found.violations.flatMap(rule => rule.nodes.map(
        node => `${rule.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
    return [faults, [...new Set(unseen.values())]];
}"""
_known: set[int] = set()
# Nothing that sticks covers anything at the top, and all that unfolds is open. axe measures no
# contrast before pictures, such as the shadows at the edges of tables.
PREPARED = """all => {
    document.querySelectorAll(".table-scroll").forEach(one => { one.style.background = "none"; });
    scrollTo(0, 0);
    // Of those with one name only the last would stay open.
    document.querySelectorAll(all).forEach(one => {
        one.removeAttribute("name");
        one.open = true;
    });
    // A notice that fades out would be too pale.
    for (const one of document.getAnimations()) {
        if (one instanceof CSSAnimation) { one.pause(); one.currentTime = 0; }
    }
}"""


WIDE, NARROW = ("light", 1280), ("dark", 320)


def audit(page: Page, *looks: tuple[str, int], menus: bool = False) -> None:
    """axe finds nothing in a wide light page and in a narrow dark one, which does not overflow.

    Colours do not depend on the width, nor the layout on the colours: two runs see all four.
    All that unfolds is open, but for menus, which would cover the page, unless `menus`.
    """
    unfolded = "details" if menus else "details:not(.menu)"
    try:
        _audit(page, unfolded, looks or (WIDE, NARROW))
    except PlaywrightError as error:  # what was clicked last has just led to another page
        if "context was destroyed" not in str(error):
            raise
        _audit(page, unfolded, looks or (WIDE, NARROW))


def _audit(page: Page, unfolded: str, looks: tuple[tuple[str, int], ...]) -> None:
    page.wait_for_load_state()
    page.evaluate(PREPARED, unfolded)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    for scheme, width in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        faults, found = page.evaluate(FAULTS, [RULES, " ".join(map(str, _known))])
        assert not faults, f"{page.url}, {scheme}, {width} px:\n" + "\n".join(faults)
        _known.update(found)
        room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert room[0] <= room[1], f"{page.url} overflows at {width} px: {room}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 800})


FINGER = 44  # px
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


@pytest.fixture
def model_calls(monkeypatch):
    """The inputs with which a scripted target was asked."""
    calls: list[dict] = []
    ask = ScriptedEndpoint.predict

    def counted(self, batch, *, deadline_seconds):
        calls.extend(batch)
        return ask(self, batch, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(ScriptedEndpoint, "predict", counted)
    return calls
