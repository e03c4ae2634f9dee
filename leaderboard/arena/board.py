"""What pages and the API show of an arena, cached between requests. Loads numpy only to rank."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isnan, log
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from core.charts import Heat
from core.data.adaptive_cache import Kept, kept_many
from core.text.words import gettext_noop
from leaderboard.models import Comparison, Contestant
from tasks.models import Task

LARGE_COMPARISONS = 2_000
"""Comparisons above which a thread ranks the models."""
MIN_STYLED_BATTLES = 100
"""Battles that a ranking with the style of answers held constant needs."""
MAX_MATRIX_MODELS = 10
"""The number of models in the matrix of wins: the first ones."""
EFFECT_FIELDS = ("effect", "low", "high")
Table = Mapping[str, Any]
"""A report for programs, with the shares of wins among the first models."""


class ArenaLine(NamedTuple):
    """A model of the ranking with its strength and its interval."""

    model: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None


class Size(NamedTuple):
    """The numbers of comparisons and models of an arena. live: models that battles may draw."""

    comparisons: int
    models: int
    live: int

    @property
    def has_battles(self) -> bool:
        """Return whether battles can begin now."""
        return self.live > 1


def read_cached_table(task: Task) -> Kept | None:
    """Return the cached table of an arena; without comparisons it has no models.

    None while a large table is computed for the first time. At most three queries.
    """
    key = f"arena:{task.pk}"

    def count(keys: Sequence[str]) -> Mapping[str, Any]:
        return {key: _compute_table(task)}

    # Counted only up to the limit, which takes the same time for any arena.
    def is_slow(keys: Sequence[str]) -> bool:
        return task.comparisons.all()[: LARGE_COMPARISONS + 1].count() > LARGE_COMPARISONS

    return kept_many([key], count, is_slow).get(key)


def _compute_table(task: Task) -> Table:
    from leaderboard.arena.report import compute_report

    if not task.comparisons.exists():
        return {
            "models": [],
            "battles": 0,
            "voters": 0,
            "is_bounded": False,
            "unconnected": [],
            "wins": [],
            "style": None,
        }
    report = compute_report(task)
    shares = []
    for row in report.wins[:MAX_MATRIX_MODELS, :MAX_MATRIX_MODELS].tolist():
        shares.append([None if isnan(share) else share for share in row])
    return {
        **report.as_json,
        "is_bounded": report.is_bounded,
        "unconnected": report.unconnected,
        "wins": shares,
        "style": _compute_style(task),
    }


def _compute_style(task: Task) -> Table | None:
    """Return the ranking with the style of answers held constant; None if battles are too few."""
    from leaderboard.arena.report import compute_style_report

    # It fits four further effects, which few battles cannot tell from noise.
    if task.comparisons.filter(style__isnull=False).count() < MIN_STYLED_BATTLES:
        return None
    report = compute_style_report(task)
    return {**report.as_json, "is_bounded": report.is_bounded, "effects": report.effects}


def build_report_body(task: Task, cached_table: Kept) -> dict[str, Any]:
    """Return the table with its task and its date."""
    named = {"code": task.code, "name": task.name}
    return {
        "task": named,
        "date": cached_table.counted_at.date().isoformat(),
        **cached_table.numbers,
    }


def build_arena_lines(table: Table) -> list[ArenaLine]:
    """Return the models as the page shows them."""
    lines = []
    for model in table["models"]:
        lines.append(ArenaLine(model, model["strength"], model["low"], model["high"]))
    return lines


EFFECTS = {
    "length": gettext_noop("An answer twice as long"),
    "headings": gettext_noop("One heading instead of none"),
    "lists": gettext_noop("One item of a list instead of none"),
    "bold": gettext_noop("One bold stretch instead of none"),
}
"""What adds log 2 to a covariate."""


def build_style_values(table: Table) -> Mapping[str, Any] | None:
    """Return the page's values for the ranking with style held constant; None without one."""
    style = table["style"]
    if style is None:
        return None
    effects = []
    for effect in style["effects"]:
        numbers = (effect[end] for end in EFFECT_FIELDS)
        doubled = [None if number is None else log(2) * number for number in numbers]
        effects.append((_(EFFECTS[effect["name"]]), doubled))
    return {"lines": build_arena_lines(style), "battles": style["battles"], "effects": effects}


def iter_win_rows(table: Table) -> Iterator[tuple[str, list[Heat]]]:
    """Yield the rows of the win matrix: a model and its share of wins against each first model."""
    # Only the first models have shares.
    for model, shares in zip(table["models"], table["wins"], strict=False):
        cells = []
        for share in shares:
            cells.append(Heat("–") if share is None else Heat(f"{share:.0%}", share))
        yield model["name"], cells


def list_arena_notices(table: Table) -> list[str]:
    """Return the notices that a reader of the strengths needs."""
    sentences = []
    if table["is_bounded"]:
        sentences.append(
            _(
                "Some models won or lost everything, so their strengths would be infinite. Each "
                "model has half a win and half a loss added against an imaginary one."
            )
        )
    if names := ", ".join(table["unconnected"]):
        text = _("Never compared with most models, so without a strength: %(names)s.")
        sentences.append(text % {"names": names})
    if table["voters"] == 1:
        sentences.append(_("One person voted, so there are no intervals and no ranks apart."))
    return sentences


def count_sizes(tasks: Collection[Task]) -> Mapping[int, Size]:
    """Return the size of each arena among the tasks by task id, cached for a short time.

    No queries without an arena, otherwise at most three.
    """
    arenas = {f"arena-size:{task.pk}": task.pk for task in tasks if task.config.kind == "arena"}
    if not arenas:
        return {}

    def count(keys: Sequence[str]) -> Mapping[str, Size]:
        pks = [arenas[key] for key in keys]
        live_contestants = Contestant.objects.filter(is_live=True, target__isnull=False)
        comparisons = _count_by_task(Comparison.objects.all(), pks)
        models = _count_by_task(Contestant.objects.all(), pks)
        live_models = _count_by_task(live_contestants, pks)
        sizes = {}
        for key, pk in zip(keys, pks, strict=True):
            sizes[key] = Size(comparisons.get(pk, 0), models.get(pk, 0), live_models.get(pk, 0))
        return sizes

    counted = kept_many(list(arenas), count)
    return {arenas[key]: each.numbers for key, each in counted.items()}


def _count_by_task(rows: QuerySet[Any], tasks: Sequence[int]) -> dict[int, int]:
    """Count the rows of each task; tasks without rows are left out."""
    return dict(rows.filter(task__in=tasks).values_list("task").annotate(Count("pk")))
