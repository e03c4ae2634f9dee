"""Values of an arena for pages and the API, cached between requests. Loads numpy only to rank."""

from collections.abc import Collection, Mapping, Sequence
from math import isnan, log
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from core.data.adaptive_cache import CachedResult, read_or_count_many
from core.text.words import gettext_noop
from leaderboard.models import Comparison, Contestant
from tasks.models import Task

LARGE_COMPARISONS = 2_000
"""The number of comparisons above which a thread ranks the models."""
MIN_STYLED_BATTLES = 100
"""The fewest battles for a ranking with the style of answers held constant."""
MAX_MATRIX_MODELS = 10
"""The most models in the matrix of wins; the best ones are shown."""
EFFECT_FIELDS = ("effect", "low", "high")
Table = Mapping[str, Any]
"""A report as JSON values, with the shares of wins among the first models."""


class ArenaLine(NamedTuple):
    """A model of the ranking with its strength and its interval."""

    model: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None


class ArenaSize(NamedTuple):
    """The numbers of comparisons and models of an arena. live: models that battles may draw."""

    comparisons: int
    models: int
    live: int

    @property
    def has_battles(self) -> bool:
        """Return whether battles can begin now."""
        return self.live > 1


def read_cached_table(task: Task) -> CachedResult | None:
    """Return the cached table of an arena; without comparisons it has no models.

    None while a large table is computed for the first time. At most three queries.
    """
    key = f"arena:{task.pk}"

    def compute_tables(keys: Sequence[str]) -> Mapping[str, Any]:
        return {key: _compute_table(task)}

    # Counted only up to the limit, so the time does not depend on the arena's size.
    def is_slow(keys: Sequence[str]) -> bool:
        return task.comparisons.all()[: LARGE_COMPARISONS + 1].count() > LARGE_COMPARISONS

    return read_or_count_many([key], compute_tables, is_slow).get(key)


def find_cached_table(task: Task) -> Table | None:
    """Return the cached table of an arena without computing it; None while it is not cached."""
    cached_table: CachedResult | None = cache.get(f"arena:{task.pk}")
    return cached_table.numbers if cached_table else None


def read_ranks(task: Task) -> dict[str, int]:
    """Return the models' ranks by name from the cached table; empty while it is not cached."""
    table = find_cached_table(task)
    models = table["models"] if table else []
    return {model["name"]: model["rank"] for model in models if model["rank"]}


def _compute_table(task: Task) -> Table:
    from leaderboard.arena.report import compute_report

    if not task.comparisons.exists():
        return {
            "models": [],
            "battles": 0,
            "voters": 0,
            "weighted_battles": 0,
            "is_bounded": False,
            "unconnected": [],
            "wins": [],
            "pair_battles": [],
            "style": None,
        }
    report = compute_report(task)
    shares = []
    for row in report.wins[:MAX_MATRIX_MODELS, :MAX_MATRIX_MODELS].tolist():
        shares.append([None if isnan(share) else share for share in row])
    return {
        **report.as_json,
        "weighted_battles": report.weighted_battles,
        "is_bounded": report.is_bounded,
        "unconnected": report.unconnected,
        "wins": shares,
        # Only for the page: a share of few battles has no colour.
        "pair_battles": report.pair_battles[:MAX_MATRIX_MODELS, :MAX_MATRIX_MODELS].tolist(),
        "style": _compute_style(task),
    }


def _compute_style(task: Task) -> Table | None:
    """Return the ranking with the style of answers held constant; None if battles are too few."""
    from leaderboard.arena.report import compute_style_report

    # It fits four more effects, which are noise with few battles.
    if task.comparisons.filter(style__isnull=False).count() < MIN_STYLED_BATTLES:
        return None
    report = compute_style_report(task)
    return {**report.as_json, "is_bounded": report.is_bounded, "effects": report.effects}


def build_report_body(task: Task, cached_table: CachedResult) -> dict[str, Any]:
    """Return the table for readers: with its task and date, and without the pairs' battles."""
    numbers = dict(cached_table.numbers)
    numbers.pop("pair_battles", None)
    return {
        "task": {"code": task.code, "name": task.name},
        "date": cached_table.counted_at.date().isoformat(),
        **numbers,
    }


def build_arena_lines(table: Table) -> list[ArenaLine]:
    """Return the models as the page shows them."""
    lines = []
    for model in table["models"]:
        lines.append(ArenaLine(model, model["strength"], model["low"], model["high"]))
    return lines


EFFECTS = {
    "length": gettext_noop("Doubling the length of an answer"),
    "headings": gettext_noop("One heading instead of none"),
    "lists": gettext_noop("One list item instead of none"),
    "bold": gettext_noop("One bold passage instead of none"),
}
"""For each covariate, a change that adds log 2 to it, in words."""


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


def list_arena_notices(table: Table) -> list[str]:
    """Return the notices that a reader of the strengths needs."""
    sentences = []
    if table["is_bounded"]:
        sentences.append(
            _(
                "Some models won or lost every battle. To keep strengths finite, we added "
                "half a win and half a loss to each model."
            )
        )
    if names := ", ".join(table["unconnected"]):
        text = _("Not enough comparisons for a strength: %(names)s.")
        sentences.append(text % {"names": names})
    if table["voters"] == 1:
        sentences.append(
            _(
                "Only one person has voted. Intervals need more voters, so all models share a "
                "rank until then."
            )
        )
    return sentences


def count_sizes(tasks: Collection[Task]) -> Mapping[int, ArenaSize]:
    """Return the size of each arena among the tasks by task id, cached for a short time.

    No queries without an arena, otherwise at most three.
    """
    arenas = {f"arena-size:{task.pk}": task.pk for task in tasks if task.config.kind == "arena"}
    if not arenas:
        return {}

    def compute_sizes(keys: Sequence[str]) -> Mapping[str, ArenaSize]:
        arena_ids = [arenas[key] for key in keys]
        live_contestants = Contestant.objects.filter(is_live=True, target__isnull=False)
        comparisons = _count_by_task(Comparison.objects.all(), arena_ids)
        models = _count_by_task(Contestant.objects.all(), arena_ids)
        live_models = _count_by_task(live_contestants, arena_ids)
        sizes = {}
        for key, pk in zip(keys, arena_ids, strict=True):
            sizes[key] = ArenaSize(
                comparisons.get(pk, 0), models.get(pk, 0), live_models.get(pk, 0)
            )
        return sizes

    cached_sizes = read_or_count_many(list(arenas), compute_sizes)
    return {arenas[key]: each.numbers for key, each in cached_sizes.items()}


def _count_by_task(rows: QuerySet[Any], tasks: Sequence[int]) -> dict[int, int]:
    """Count the rows of each task; tasks without rows are left out."""
    return dict(rows.filter(task__in=tasks).values_list("task").annotate(Count("pk")))
