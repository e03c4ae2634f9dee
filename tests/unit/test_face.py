"""The tokens of site.css: words can be read on every ground, in light and in dark."""

import ast
import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "static"
CSS = (STATIC / "css/site.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block)) for block in CSS.split(":root {")[1:3]
)
GROUNDS = ("--bg", "--surface", "--sunken")
WORDS = [
    *((word, ground) for word in ("--text", "--muted", "--accent") for ground in GROUNDS),
    *((f"--{name}", ground) for name in ("fooled", "held", "danger") for ground in GROUNDS[:2]),
    *((f"--{name}", f"--{name}-bg") for name in ("fooled", "held", "danger", "accent", "info")),
    *(
        ("--text", ground)
        for ground in ("--selected", "--win-1", "--win-2", "--lose-1", "--lose-2")
    ),
    *(("--accent", ground) for ground in ("--selected",)),
    ("--on-accent", "--accent"),
    ("--bg", "--text"),
]
MARKS = [
    *(("--control", ground) for ground in GROUNDS),
    *((f"--series-{n}", ground) for n in range(1, 5) for ground in GROUNDS[:2]),
    *((f"--task-{n}", "--surface") for n in range(1, 7)),
    *((mark, ground) for mark in ("--others", "--ink-series") for ground in GROUNDS[:2]),
]


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(WORDS, 4.5), (MARKS, 3.0)], ids=["words", "marks"])
def test_contrast(theme, pairs, least):
    found = {pair: round(contrast(theme[pair[0]], theme[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < least} == {}


@pytest.mark.parametrize("symbol", "ακ")
def test_a_symbol_of_statistics_loads_no_alphabet(symbol):
    faces = re.findall(r'url\("\.\./([^"]+)"\).+?unicode-range: ([^;]+);', CSS)
    files = [file for file, ranges in faces if covers(ranges, ord(symbol))]
    assert files == ["fonts/inter-symbols.woff2"]
    assert (STATIC / files[0]).stat().st_size < 2_000


def covers(ranges: str, code: int) -> bool:
    for part in ranges.split(", "):
        first, _dash, last = part.removeprefix("U+").partition("-")
        if int(first, 16) <= code <= int(last or first, 16):
            return True
    return False


ROOMS = ("core", "tasks", "annotation", "validation", "evaluation", "leaderboard", "dynabench")


def test_an_empty_choice_says_what_one_chooses():
    """Django's own is a line of hyphens."""
    calls = (
        (path, node)
        for room in ROOMS
        for path in (STATIC.parent / room).rglob("*.py")
        if "ModelChoiceField(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "forms.ModelChoiceField"
    )
    bare = [
        f"{path.name}:{node.lineno}"
        for path, node in calls
        if "empty_label" not in {word.arg for word in node.keywords}
    ]
    assert not bare
