"""What pages and the API show of an arena, kept between requests. Without numpy until it ranks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

from django.db.models import Count
from django.utils.translation import gettext as _

from core.charts import Heat
from core.data.adaptive_cache import Kept, kept_many
from core.text.words import gettext_noop
from leaderboard.models import Comparison, Contestant
from tasks.models import Task

LARGE = 2_000
"""With more comparisons a thread ranks the models."""
LEAST_STYLED = 100
"""Battles before the models are ranked with the style of answers held constant, too."""
MOST = 10
"""Models in the matrix of wins: the first ones."""
ENDS = ("effect", "low", "high")
Table = Mapping[str, Any]
"""A report for programs, with the shares of wins among the first models."""


class ArenaLine(NamedTuple):
    """A model of the table, and its strength with the ends of its interval."""

    model: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None


class Size(NamedTuple):
    """How much was compared in an arena; live: models that answer in battles."""

    comparisons: int
    models: int
    live: int

    @property
    def has_battles(self) -> bool:
        """Return whether people may battle now."""
        return self.live > 1


def kept_table(task: Task) -> Kept | None:
    """Return the table of an arena; without comparisons it has no models.

    None while a large one is computed for the first time. At most three queries.
    """
    key = f"arena:{task.pk}"

    def count(keys: Sequence[str]) -> Mapping[str, Any]:
        return {key: _table(task)}

    def is_slow(keys: Sequence[str]) -> bool:
        return task.comparisons.all()[: LARGE + 1].count() > LARGE

    return kept_many([key], count, is_slow).get(key)


def _table(task: Task) -> Table:
    from leaderboard.arena.report import report_of

    if not task.comparisons.exists():
        nothing: dict[str, Any] = {"models": [], "battles": 0, "voters": 0, "is_bounded": False}
        return {**nothing, "unconnected": [], "wins": [], "style": None}
    report = report_of(task)
    first = report.wins[:MOST, :MOST].tolist()
    shares = [[None if share != share else share for share in row] for row in first]  # NaN
    more = {"is_bounded": report.is_bounded, "unconnected": report.unconnected, "wins": shares}
    return {**report.as_json, **more, "style": _style(task)}


def _style(task: Task) -> Table | None:
    """Return the ranking with the style of answers held constant; None with few battles."""
    from leaderboard.arena.report import style_report_of

    if task.comparisons.filter(style__isnull=False).count() < LEAST_STYLED:
        return None
    report = style_report_of(task)
    return {**report.as_json, "is_bounded": report.is_bounded, "effects": report.effects}


def report_body(task: Task, kept: Kept) -> dict[str, Any]:
    """Return the table with its task and its date."""
    named = {"code": task.code, "name": task.name}
    return {"task": named, "date": kept.counted_at.date().isoformat(), **kept.numbers}


def arena_lines(table: Table) -> list[ArenaLine]:
    """Return the models as the page draws them."""
    return [ArenaLine(one, one["strength"], one["low"], one["high"]) for one in table["models"]]


EFFECTS = {
    "length": gettext_noop("An answer twice as long"),
    "headings": gettext_noop("One heading instead of none"),
    "lists": gettext_noop("One item of a list instead of none"),
    "bold": gettext_noop("One bold stretch instead of none"),
}
"""What adds log 2 to a covariate."""


def style_values(table: Table) -> Mapping[str, Any] | None:
    """Return what the page shows of the ranking with style held constant; None without one."""
    style = table["style"]
    if style is None:
        return None
    effects = [
        (_(EFFECTS[one["name"]]), [None if one[k] is None else log(2) * one[k] for k in ENDS])
        for one in style["effects"]
    ]
    return {"lines": arena_lines(style), "battles": style["battles"], "effects": effects}


def win_rows(table: Table) -> Iterator[tuple[str, list[Heat]]]:
    """Yield the rows of the matrix: a model and its shares of wins against the first models."""
    for model, shares in zip(table["models"], table["wins"], strict=False):
        yield (
            model["name"],
            [Heat("–") if share is None else Heat(f"{share:.0%}", share) for share in shares],
        )


def arena_notices(table: Table) -> list[str]:
    """Return the sentences that a reader of the strengths should know."""
    found = []
    if table["is_bounded"]:
        found.append(
            _(
                "Some models won or lost everything, so their strengths would be infinite. Each "
                "model has half a win and half a loss added against an imaginary one."
            )
        )
    if names := ", ".join(table["unconnected"]):
        text = _("Never compared with most models, so without a strength: %(names)s.")
        found.append(text % {"names": names})
    if table["voters"] == 1:
        found.append(_("One person voted, so there are no intervals and no ranks apart."))
    return found


def sizes_of(tasks: Collection[Task]) -> Mapping[int, Size]:
    """Return how much was compared in each arena among the tasks, now or a little ago.

    No queries without an arena, otherwise at most three.
    """
    arenas = {f"arena-size:{one.pk}": one.pk for one in tasks if one.config.kind == "arena"}

    def count(keys: Sequence[str]) -> Mapping[str, Size]:
        wanted = [arenas[key] for key in keys]
        live = Contestant.objects.filter(is_live=True, target__isnull=False)
        counts = [
            dict(rows.filter(task__in=wanted).values_list("task").annotate(Count("pk")))
            for rows in (Comparison.objects.all(), Contestant.objects.all(), live)
        ]
        return {key: Size(*(one.get(arenas[key], 0) for one in counts)) for key in keys}

    kept = kept_many(list(arenas), count) if arenas else {}
    return {arenas[key]: one.numbers for key, one in kept.items()}
