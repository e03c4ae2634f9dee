"""Make docs/pictures/ from the demo: pictures of pages, and a film of one walk through them.

    python scripts/pictures.py                # plays the demo first, some minutes
    python scripts/pictures.py --home FOLDER  # from a copy of a home in which it was played

Needs Chromium and the packages of requirements-dev.txt.
"""

import argparse
import io
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Locator, Page, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

from scripts.chromium import CHROMIUM  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
MANAGE = [sys.executable, "-u", str(ROOT / "manage.py")]
DEMO = "/t/demo-simulated/"
SCREEN = {"width": 1280, "height": 900}
FILM, SIZE = {"width": 1080, "height": 675}, (960, 600)
FRAME = 60  # ms
PATIENCE = 60_000  # ms; the machine may be busy
ARROW = ((0, 0), (0, 19), (4.5, 15), (8, 22), (11, 20.5), (7.5, 14), (13, 14))
# What people would call so; the model says what it says. Keys begin the words of a goal.
TEXTS = {
    "positive": [
        "I feared the worst, and not one of my fears came true.",
        "They had to carry me out, so little did I want to leave.",
        "My only complaint is that they close at all.",
        "Nothing here could be better, and I looked hard.",
        "I came for one coffee and left when they stacked the chairs.",
    ],
    "negative": [
        "I would go there again if every other place burned down.",
        "Lovely, another Monday on which nobody opened the door.",
        "They smiled kindly for an hour, and then the soup came cold.",
        "The best part of the visit was the bus that took us home.",
        "Everybody told us it was wonderful; we must have found another one.",
    ],
    "neutral": [
        "A sign at the door says best soup in town; it opens at noon.",
        "My sister calls it great, my brother calls it awful.",
        "They asked us whether we were happy, and we filled in a form.",
        "The great hall lies behind the small one, next to the lost property.",
        "A friend of mine lost a glove there and found it a week later.",
    ],
    "definitely true": ["It is not the case that nothing happened there."],
    "definitely false": ["There is nothing there, and nobody ever heard of it."],
    "neither": ["On Sundays one of them sings in a choir, not very well."],
}


class Film:
    """Frames of a page under a pointer that we draw, each with its milliseconds."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[tuple[Image.Image, int]] = []
        self.at = (FILM["width"] * 0.6, FILM["height"] * 0.6)
        self.shown = self._look()

    def _look(self) -> Image.Image:
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        return picture.resize(SIZE, Image.Resampling.LANCZOS)

    def _frame(self, ms: int = FRAME, *, pressed: bool = False) -> None:
        frame = self.shown.copy()
        scale, size = SIZE[0] / FILM["width"], 0.85 if pressed else 1
        x, y = self.at[0] * scale, self.at[1] * scale
        outline = [(x + size * dx, y + size * dy) for dx, dy in ARROW]
        ImageDraw.Draw(frame).polygon(outline, fill="black", outline="white", width=2)
        self.frames.append((frame, ms))

    def look(self, ms: int) -> None:
        """What the page shows now, as long as it takes to read it."""
        self.shown = self._look()
        self._frame(ms)

    def click(self, target: Locator, read_ms: int = 1200) -> None:
        """Glide to the target, press it, and leave time to read what follows."""
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box, target
        goal = (box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
        start, steps = self.at, 10
        for step in range(1, steps + 1):
            part = step / steps
            part = part * part * (3 - 2 * part)  # slow at both ends
            self.at = tuple(a + (b - a) * part for a, b in zip(start, goal, strict=True))
            self._frame()
        self.page.mouse.move(*goal)
        self._frame(2 * FRAME, pressed=True)
        target.click()
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_timeout(400)  # bars have grown
        self.look(read_ms)

    def type(self, text: str) -> None:
        """Write two letters a frame."""
        for place in range(0, len(text), 2):
            self.page.keyboard.type(text[place : place + 2])
            self.look(FRAME)
        self._frame(600)

    def scroll(self, pixels: int, read_ms: int = 1500) -> None:
        """Roll the page."""
        for _ in range(8):
            self.page.mouse.wheel(0, pixels / 8)
            self.page.wait_for_timeout(50)
            self.look(FRAME)
        self._frame(read_ms)

    def save(self, path: Path) -> None:
        """An animated WebP, which browsers and GitHub play for ever."""
        first, *others = [frame for frame, _ in self.frames]
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=[ms for _, ms in self.frames],
            loop=0,
            lossless=True,
        )


def copy_home(source: Path, home: Path) -> None:
    """Copy a home, and let its targets be loaded from the copy.

    A model server loads folders below its own home only, and targets name theirs in full.
    """
    shutil.copytree(source, home)
    with closing(sqlite3.connect(home / "db.sqlite3")) as database, database:
        folders = (f"{source}/", f"{home}/")
        database.execute("UPDATE tasks_targetmodel SET source = replace(source, ?, ?)", folders)


@contextmanager
def site(home: Path) -> Iterator[str]:
    """The whole site on a home, as `./run` runs it."""
    ports = [free_port(), free_port()]
    environment = {
        **os.environ,
        "DYNABENCH_HOME": str(home),
        "PORT": str(ports[0]),
        "MODEL_SERVER_URL": f"http://127.0.0.1:{ports[1]}",
        "DEBUG": "0",
    }
    if not (home / "db.sqlite3").exists():
        for command in (["quickstart", "--setup-only"], ["demo", "--seed", "3"]):
            subprocess.run([*MANAGE, *command], env=environment, check=True)
    run = [*MANAGE, "quickstart"]
    with subprocess.Popen(run, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            if not any("Dynabench is at" in line for line in server.stdout):
                raise RuntimeError("The site did not start.")
            yield f"http://localhost:{ports[0]}"
        finally:
            server.terminate()
            server.communicate()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class People:
    """Browsers of the accounts that quickstart made."""

    def __init__(self, playwright: Playwright, url: str, home: Path) -> None:
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.url = url
        lines = (home / "demo-accounts.txt").read_text().splitlines()
        self.passwords = dict(line.split() for line in lines)

    def page(self, email: str = "", screen: dict[str, int] = SCREEN, scheme: str = "light") -> Page:
        """A page of somebody who is signed in, or of a stranger."""
        context = self.browser.new_context(
            base_url=self.url, viewport=screen, color_scheme=scheme, locale="en-GB"
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        if email:
            page.goto("/accounts/login/")
            page.fill("[name=login]", email)
            page.fill("[name=password]", self.passwords[email])
            page.locator("main form button").first.click()
            page.wait_for_url(f"{self.url}/")
        return page


def keep(page: Page, name: str, path: str = "") -> None:
    """The picture of a page, as a PNG of 128 colours."""
    if path:
        page.goto(path)
    page.wait_for_timeout(600)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def text_for(page: Page, number: int = 0) -> str:
    """A sentence that has the label which the page asks for."""
    goal = page.locator("#goal .goal").inner_text()
    return next(texts for words, texts in TEXTS.items() if goal.startswith(words))[number]


def submit(page: Page) -> None:
    """Submit the form until the model answers; the first question may have to load it."""
    for _ in range(60):
        page.click("#submit")
        page.locator("#verdict, #failed").first.wait_for()
        if page.locator("#verdict").is_visible():
            return
        page.wait_for_timeout(2000)
        page.reload()
    raise RuntimeError(f"No answer on {page.url}")


def ask_for_praise(page: Page) -> None:
    """Open the demo's write page with the goal for which the sentences are hardest."""
    page.goto(f"{DEMO}write/")
    while not page.locator("#goal .goal", has_text="positive").count():
        page.locator("details.more summary").click()
        with page.expect_response("**/write/next/"):
            page.locator("[name=want][value=goal]").click()
        page.reload()


def write_for_judges(people: People) -> None:
    """Two examples that the person of the film can judge, if the model can be fooled so."""
    page = people.page("validator@example.com")
    page.goto(f"{DEMO}write/")
    fooled = 0
    for number in (2, 3, 4):
        page.fill("#write-form textarea", text_for(page, number))
        submit(page)
        fooled += page.locator("#verdict .fooled").count()
        if fooled == 2:
            return
        page.click("#next")
        page.locator("#verdict").wait_for(state="detached")


def right_answer(page: Page) -> Locator:
    """The button of the label for which the sentence was written."""
    shown = page.locator("#judge-form").locator("..").inner_text()
    label = next(name for name, texts in TEXTS.items() if any(text in shown for text in texts))
    return page.locator("#judge-form button", has_text=label)


def film(people: People) -> None:
    """Home, task, write, verdict, judge, board."""
    page = people.page("annotator@example.com", FILM)
    ask_for_praise(page)
    page.goto("/")
    film = Film(page)
    film.look(1500)
    film.click(page.get_by_role("link", name="Demo", exact=True).first, 1800)
    tabs = page.get_by_role("navigation", name="Task")
    film.click(tabs.get_by_role("link", name="Write"), 1200)
    film.type(text_for(page, 0))
    film.click(page.locator("#submit"), 3000)
    film.click(tabs.get_by_role("link", name="Judge"), 2000)
    while page.locator("#judge-form").count():
        film.click(right_answer(page), 1000)
    film.click(tabs.get_by_role("link", name="Leaderboard"), 1500)
    film.scroll(340, 3000)
    film.save(PICTURES / "tour.webp")


def pictures(people: People) -> None:
    """One picture of each kind of page."""
    keep(people.page(scheme="dark"), "home-dark", "/")
    page = people.page("owner@example.com")
    page.goto("/t/nli/write/")
    page.fill("#write-form textarea", text_for(page))
    keep(page, "write")
    ask_for_praise(page)
    page.fill("#write-form textarea", text_for(page, 1))
    submit(page)
    page.evaluate("scrollTo(0, 0)")
    keep(page, "result")
    keep(page, "task", DEMO)
    keep(page, "leaderboard", f"{DEMO}leaderboard/")
    page.goto(f"{DEMO}leaderboard/compare/")
    page.locator("select[name=a]").select_option(index=1)
    page.locator("select[name=b]").select_option(index=2)
    page.locator("form:has(select[name=a]) button").first.click()
    page.wait_for_load_state("networkidle")
    keep(page, "compare")
    keep(people.page(), "status", "/status/")
    for_owners(people.page("admin@example.com"))
    for_researchers(page)


def for_owners(page: Page) -> None:
    """Take the pictures of docs/how-to-open-a-round.md and docs/how-to-release-a-round.md."""
    own = "/own/demo-simulated/"
    keep(page, "dashboard", f"{own}?round=3")
    keep(page, "new-task", "/new/")
    keep(page, "rounds", f"{own}rounds/")
    keep(page, "review", f"{own}review/")
    keep(page, "release", f"{own}rounds/3/release/")


def for_researchers(page: Page) -> None:
    """Take the pictures of docs/first-model.md."""
    keep(page, "submit", f"{DEMO}submit/")
    page.goto(f"{DEMO}models/")
    page.locator("main a[href^='/m/']").first.click()
    keep(page, "model")


def judge_trace(people: People, home: Path) -> None:
    """Take the picture of docs/traces.md: an agent's trace that is judged step by step."""
    traces = ROOT / "tests" / "fixtures" / "traces" / "opentelemetry.jsonl"
    importing = ["import_examples", str(traces), "--from", "opentelemetry", "--task", "agent"]
    importing += ["--create", "--owner", "owner@example.com", "--judge"]
    importing += ["--labels", "right,wrong", "--steps", "fine,bad"]
    # Only members see such a task, and its owner could read the votes of others.
    joining = ["people", "role", "validator@example.com", "agent", "judge"]
    environment = {**os.environ, "DYNABENCH_HOME": str(home), "DEBUG": "0"}
    for command in (importing, joining):
        subprocess.run([*MANAGE, *command], env=environment, check=True)
    page = people.page("validator@example.com")
    page.goto("/t/agent/judge/")
    for name in ("step-3", "step-4"):
        page.locator(f"[name={name}][value=fine]").check()
    keep(page, "steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, help="a home with the demo; a copy is used")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder) / "home"
        if asked.home:
            copy_home(asked.home.resolve(), home)
        else:
            home.mkdir()
        with site(home) as url:
            people = People(playwright, url, home)
            pictures(people)
            write_for_judges(people)
            keep(people.page("annotator@example.com"), "judge", f"{DEMO}judge/")
            judge_trace(people, home)
            film(people)


if __name__ == "__main__":
    main()
