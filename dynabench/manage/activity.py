"""What people do in a round, for its dashboard."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any, cast

from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext_noop

from annotation.models import Example
from core.data.adaptive_cache import kept
from core.days import midnight
from tasks.models import Round
from validation.decisions.counted import counts_of, is_counted, is_try
from validation.judging.queue import waiting_examples
from validation.models import Consensus, QueueItem, Validation

DAYS = 30
TIMED = 500
"""Medians are of this many latest examples and votes."""
THIN = 20
"""How many values of a slice are shown: those with the fewest examples."""
TAG, CHALLENGE = gettext_noop("Tag"), gettext_noop("Challenge")
"""What two slices are called; the others are called as the task calls them."""


@dataclass(frozen=True)
class Activity:
    """waiting: examples that need votes; oldest: when the first of them was written.

    people: who wrote or judged since 00:00 UTC. writing, judging: median seconds of the latest,
    None where none was measured. days: (day, tries, fooled, catches), without empty days.
    labels: (the author's label, tries, confirmed); empty where authors choose none.
    slices: (which slice, its value, tries, confirmed), those with the fewest confirmed first.
    agreement: (day, votes on examples with a consensus, those that say the same as it).
    fooled_judged: tries that fooled and have a vote.
    """

    waiting: int
    oldest: datetime | None
    people: int
    writing: float | None
    judging: float | None
    days: Sequence[tuple[date, int, int, int]]
    labels: Sequence[tuple[str, int, int]]
    slices: Sequence[tuple[str, str, int, int]]
    counted_at: datetime
    agreement: Sequence[tuple[date, int, int]] = ()
    fooled_judged: int = 0


def activity(round: Round) -> Activity:
    """Return a round's activity, counted now or a little ago.

    Nine queries, and one for each slice of the task.
    """
    return kept(f"activity:{round.pk}", lambda: count_activity(round))


def count_activity(round: Round) -> Activity:
    """Count a round's activity now. Imported votes and examples are nobody's work of that day."""
    examples = _written(round).filter(uid__isnull=True)
    votes = Validation.objects.filter(example__round=round, is_imported=False, by_program=False)
    queue = QueueItem.objects.filter(
        round=round, still_needed__gt=0, example__retracted_at__isnull=True
    ).aggregate(oldest=Min("example__created_at"))
    now = timezone.now()
    began = midnight()
    today = Q(created_at__gte=began)
    people = set(examples.filter(today).values_list("annotator", flat=True).distinct())
    people |= set(votes.filter(today).values_list("validator", flat=True).distinct())
    shown = examples.filter(shown_at__isnull=False).order_by("-pk")
    times = shown.values_list("shown_at", "created_at")[:TIMED]
    seconds = votes.filter(seconds__isnull=False).order_by("-pk").values_list("seconds", flat=True)
    since = began - timedelta(days=DAYS - 1)
    days = (
        examples.filter(created_at__gte=since)
        .annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(**counts_of("fooled", "catches"))
        .order_by("day")
    )
    return Activity(
        waiting_examples([round])[round.pk],
        queue["oldest"],
        len(people - {None}),
        _median(
            (sent - shown).total_seconds()  # type: ignore[operator]
            for shown, sent in times
        ),
        _median(seconds[:TIMED]),
        list(days),
        _labels(round),
        _slices(round),
        now,
        _agreement(votes.filter(created_at__gte=since)),
        _written(round).filter(is_counted("fooled"), is_counted("judged")).count(),
    )


def _written(round: Round) -> QuerySet[Example]:
    """Return the examples that people wrote in the round and did not retract."""
    return Example.objects.filter(is_try(), round=round)


def _median(seconds: Iterable[Any]) -> float | None:
    return median(found) if (found := list(seconds)) else None


def _agreement(votes: QuerySet[Validation]) -> Sequence[tuple[date, int, int]]:
    decided = votes.filter(example__consensus__state=Consensus.State.DECIDED)
    says = {name: F(f"example__consensus__{name}") for name in ("label", "verdict")}
    return list(
        decided.annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(votes=Count("pk"), same=Count("pk", filter=Q(**says)))
        .order_by("day")
    )


def _labels(round: Round) -> Sequence[tuple[str, int, int]]:
    config = round.task.config
    name = next((name for name in config.target_fields if config.labels(name)), None)
    if name is None:
        return []
    rows = (
        _written(round)
        .values_list(KeyTextTransform(name, "inputs"))
        .annotate(**counts_of("confirmed"))
        .order_by()
    )
    counts = {label: numbers for label, *numbers in rows}
    return [(label.words, *counts.get(label.value, (0, 0))) for label in config.labels(name)]


def _slices(round: Round) -> Sequence[tuple[str, str, int, int]]:
    config = round.task.config
    found = [(TAG, *row) for row in _thinnest(round, "tag")] if "tag" in config.slices else []
    if "challenge" in config.slices and config.challenges:
        found += _challenges(round)
    fields = [name for name in config.slices if name not in ("tag", "language", "challenge")]
    if round.task.is_sensitive:  # what people wrote stands on no page unshielded
        fields = [name for name in fields if config.labels(name)]
    for name in fields:
        title = config.component(name).others_title
        rows = _thinnest(round, name)
        found += [(title, config.display(name, value), *counts) for value, *counts in rows]
    return [
        (title, Truncator(value).chars(80), *counts) for title, value, *counts in found if value
    ]


def _challenges(round: Round) -> list[Any]:
    """Return (name, challenge, tries, confirmed), also of challenges that nobody took up yet."""
    taken = (
        _written(round)
        .filter(challenge__isnull=False)
        .values_list("challenge")
        .annotate(**counts_of("confirmed"))
        .order_by()
    )
    counts = {name: numbers for name, *numbers in taken}
    rows = [(CHALLENGE, name, *counts.get(name, (0, 0))) for name in round.task.config.challenges]
    return sorted(rows, key=lambda row: (row[3], row[2]))


def _thinnest(round: Round, name: str) -> Iterable[Any]:
    """Return (value, tries, confirmed) of the values with the fewest confirmed examples.

    A value of the contexts is there even if nobody has written about it yet.
    """
    of_context = name == "tag" or name in {one.name for one in round.task.config.context}
    path = "examples__" if of_context else ""
    which: Any = (
        F("tag") if name == "tag" else KeyTextTransform(name, "fields" if of_context else "inputs")
    )
    rows: Any = round.contexts.all() if of_context else round.examples.all()
    numbers = counts_of("confirmed", path=path)
    thinnest = rows.values_list(which).annotate(**numbers).order_by("confirmed", "tries")
    return cast(Iterable[Any], thinnest[:THIN])
