"""Make the pictures of docs/ruler.md: a drawing of how a ruler works, and its page.

    python scripts/ruler_pictures.py           # the drawing
    python scripts/ruler_pictures.py --page   # also the page, from a throw-away site

The page needs Chromium and the packages of requirements-dev.txt.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 360, 384
"""So narrow that its words are readable on a phone, where it shrinks by a fifth."""
AXES = ((90, "Round 5"), (185, "Anchors"), (280, "Round 6"))
TICKS = (50, 60, 70)
EXPECTED_DX = 12
"""Expected scores stand beside their axis, outside of the measured ones."""
TOP, BOTTOM, LOW, HIGH = 76, 312, 45, 81
STYLE = """
text{font:13px system-ui,sans-serif;fill:#1f2328}.axis{stroke:#8888;stroke-width:1}
.grid{stroke:#8884}.yard{fill:#8882}.line{fill:none;stroke-width:2}.guess{stroke-dasharray:4 4}
.a{stroke:#0969da}.a.dot,.a.word{fill:#0969da}.b{stroke:#7d5c00}.b.dot,.b.word{fill:#7d5c00}
.c{stroke:#8250df}.c.dot,.c.word{fill:#8250df}.word{font-weight:600}
.dot.hollow{fill:#fff;stroke-width:2}.end{text-anchor:end}.middle{text-anchor:middle}
.head{font-weight:600}.small{font-size:12px}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.a{stroke:#58a6ff}.a.dot,.a.word{fill:#58a6ff}
.b{stroke:#d4a72c}.b.dot,.b.word{fill:#d4a72c}.c{stroke:#bc8cff}.c.dot,.c.word{fill:#bc8cff}
.dot.hollow{fill:#0d1117}}.word.word{stroke:none}
"""


@dataclass(frozen=True)
class Score:
    """A score in percent; low, high: the interval of an expected one, None if it was measured."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """A model's scores on the three axes, from left to right. shade: a, b or c."""

    name: str
    shade: str
    scores: tuple[Score, Score, Score]
    label_axis: int
    label_dy: float = 4


LINES = (
    Line("Old", "a", (Score(71), Score(58), Score(61, 56, 66)), 0, 0),
    Line("Model B", "c", (Score(69), Score(57), Score(60)), 0, 12),
    Line("New", "b", (Score(74.5, 69.5, 79.5), Score(62), Score(64)), 2),
)
"""The example of docs/ruler.md."""


def draw_ruler() -> str:
    """Return the drawing as SVG, in light and dark colours; words and dashes say the same."""
    title = "Two rounds on one ruler"
    shapes = [
        f'<text class="head" x="12" y="20">{title}</text>',
        '<text class="small" x="12" y="38">Right answers in percent</text>',
        f'<rect class="yard" x="{AXES[1][0] - 36}" y="{TOP - 26}" width="72"'
        f' height="{BOTTOM - TOP + 34}" rx="6"/>',
    ]
    for x, name in AXES:
        shapes.append(f'<path class="axis" d="M{x} {TOP}V{BOTTOM}"/>')
        shapes.append(f'<text class="middle head" x="{x}" y="{TOP - 8}">{name}</text>')
    for tick in TICKS:
        y = _place(tick)
        shapes.append(f'<path class="grid" d="M{AXES[0][0]} {y}H{AXES[2][0]}"/>')
        shapes.append(f'<text class="small end" x="{WIDTH - 8}" y="{y + 4}">{tick}%</text>')
    # Lines first, so that no line crosses a dot.
    for line in LINES:
        shapes += _draw_lines(line)
    for line in LINES:
        shapes += _draw_dots(line)
    notes = (
        "Filled: measured. All models answered the anchors.",
        "Hollow: expected from the anchors, with its interval.",
        "Nobody ran these pairs of model and round.",
    )
    for number, note in enumerate(notes):
        shapes.append(f'<text class="small" x="12" y="{336 + 17 * number}">{note}</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    )
    parts = [head, f"<title>{title}</title><style>{STYLE}</style>", *shapes, "</svg>"]
    return "\n".join(parts) + "\n"


def _place(value: float) -> float:
    """Return the height of a score on the axes, in pixels from the top."""
    return round(BOTTOM - (BOTTOM - TOP) * (value - LOW) / (HIGH - LOW), 1)


def _shift(score: Score) -> int:
    """Return how far an expected score stands beside its axis; 0 for a measured one."""
    return EXPECTED_DX if score.low is not None else 0


def _draw_lines(line: Line) -> Sequence[str]:
    """Return a model's line from axis to axis, dashed to where it is only expected."""
    pairs = zip(line.scores, line.scores[1:], AXES, AXES[1:], strict=False)
    shapes = []
    for here, there, (x, _), (next_x, _) in pairs:
        is_expected = here.low is not None or there.low is not None
        css_class = f"line {line.shade}{' guess' if is_expected else ''}"
        start, end = x - _shift(here), next_x + _shift(there)
        way = f"M{start} {_place(here.value)}L{end} {_place(there.value)}"
        shapes.append(f'<path class="{css_class}" d="{way}"/>')
    return shapes


def _draw_dots(line: Line) -> Sequence[str]:
    """Return a model's dots, the intervals of expected ones, and its name."""
    shapes = []
    for place, score in enumerate(line.scores):
        # Outwards: to the left of the first axis, to the right of the last one.
        x = AXES[place][0] + (_shift(score) if place else -_shift(score))
        y = _place(score.value)
        css_class = f"{line.shade} dot"
        if score.low is not None and score.high is not None:
            ends = f"M{x} {_place(score.high)}V{_place(score.low)}"
            caps = "".join(f"M{x - 5} {_place(end)}H{x + 5}" for end in (score.low, score.high))
            shapes.append(f'<path class="line {line.shade}" d="{ends}{caps}"/>')
            css_class += " hollow"
        shapes.append(f'<circle class="{css_class}" cx="{x}" cy="{y}" r="5"/>')
    x, score = AXES[line.label_axis][0], line.scores[line.label_axis]
    side = ("end", -EXPECTED_DX - 10) if line.label_axis == 0 else ("", EXPECTED_DX + 10)
    shapes.append(
        f'<text class="{line.shade} word {side[0]}" x="{x + side[1]}"'
        f' y="{_place(score.value) + line.label_dy}">{escape(line.name)}</text>'
    )
    return shapes


def photograph_page() -> None:
    """Take the picture of the board on one ruler, on a site of its own."""
    from bench.prepared import set_up_site_here

    set_up_site_here()
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.test.testcases import LiveServerThread
    from playwright.sync_api import sync_playwright

    from scripts.chromium import CHROMIUM
    from scripts.pictures import SCREEN, keep

    fill_site()
    server = LiveServerThread("localhost", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SCREEN, locale="en-GB")
        page.goto(f"http://localhost:{server.port}/t/nli/leaderboard/?ruler=1")
        keep(page, "ruler-board")
        browser.close()
    server.terminate()


def fill_site() -> None:
    """Fill a task with 30 models and a ruler. Some models ran one of its two rounds only."""
    from core.jobs.queue import silence_queue
    from evaluation.jobs import choose_ruler
    from evaluation.models import EvaluationSet, Submission
    from evaluation.runs.rulers.fitting import refresh_ruler
    from evaluation.runs.rulers.services import request_ruler
    from tests.support.factories import TaskFactory, UserFactory
    from tests.support.rulers import let_answer, make_sets

    task = TaskFactory(code="nli", name="Natural language inference")
    held, first, second = make_sets(task, size=200)
    let_answer(task, (held, first, second), 24, harder=1.0)
    let_answer(task, (held, first), 3, first=24)
    let_answer(task, (held, second), 3, first=27, harder=1.0)
    for model in Submission.objects.all():
        model.name = model.name.capitalize()
        model.save(update_fields=["name"])
    # Secret anchors would round what the picture shows.
    EvaluationSet.objects.filter(pk=held.evaluation_set_id).update(answers_public=True)
    with silence_queue():
        ruler = request_ruler(task=task, actor=UserFactory(), anchors=100, seed=3)
    choose_ruler(ruler.pk)
    ruler.refresh_from_db()
    refresh_ruler(ruler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="also take the picture of the page")
    args = parser.parse_args()
    (PICTURES / "ruler-rounds.svg").write_text(draw_ruler(), encoding="utf-8")
    if args.page:
        photograph_page()


if __name__ == "__main__":
    main()
