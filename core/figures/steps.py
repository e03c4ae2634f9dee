"""Bars in table rows: the steps of a process on one scale, with what each step loses."""

from collections.abc import Mapping, Sequence

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from core.figures.drawing import draw_decoration
from core.figures.scene import Box, Margins, Scene, Shape

STEP_HEIGHT, BAR_HEIGHT = 16, 8


def draw_steps(steps: Sequence[tuple[str, int | None, Sequence[str]]], *, title: str) -> SafeString:
    """Return a table with a bar for each step.

    steps: the name, the count (None if unknown), and texts about its shares. The part of the
    previous bar that a step loses is hatched.
    """
    # One scale for all steps, so that a loss is as long as what it takes away.
    largest_count = max((count or 0 for _name, count, _shares in steps), default=0) or 1
    rows, previous_count = [], 0
    for number, (name, count, shares) in enumerate(steps):
        width = 100 * (count or 0) / largest_count
        shapes: list[Shape] = [Box("step bar", (0, 0), width, 100)]
        # What a step gains, as after an import, is no loss.
        if count is not None and previous_count > count:
            shapes.append(
                Box("loss bar", (width, 0), 100 * (previous_count - count) / largest_count, 100)
            )
        rows.append(
            {
                "label": name,
                "count": count,
                "shares": shares,
                "bar": _draw_bars(shapes, STEP_HEIGHT, f"step-bar step-{number}"),
            }
        )
        previous_count = count or 0
    return render_to_string("components/steps.html", {"title": title, "rows": rows})


def draw_part_bar(role: str, share: float, height: int = BAR_HEIGHT) -> SafeString:
    """Return a bar that fills a share of its container, to show below a number.

    share: in percent. height: in pixels.
    """
    return _draw_bars([Box(role, (0, 0), share, 100)], height, "part-bar")


def compute_bar_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the length of each count's bar, in percent of the longest bar."""
    # 1 where nothing was counted, so that empty bars are drawn.
    largest = max(counts.values(), default=0) or 1
    return {name: 100 * count / largest for name, count in counts.items()}


def _draw_bars(shapes: Sequence[Shape], height: int, css_class: str) -> SafeString:
    return draw_decoration(Scene(tuple(shapes), height, 0, Margins(0, 0, 0, 0), css_class))
