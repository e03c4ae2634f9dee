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
from core.data.adaptive_cache import read_or_count
from core.days import midnight
from tasks.models import Round
from validation.decisions.counted import counts_of, is_counted, is_try
from validation.judging.queue import waiting_examples
from validation.models import Consensus, QueueItem, Validation

CHART_DAYS = 30
MEDIAN_SAMPLE_SIZE = 500
"""Medians are of this many latest examples and votes."""
MAX_SLICE_VALUES = 20
"""How many values of a slice are shown: those with the fewest examples."""
# Translators: noun: a word that marks an example
TAG_TITLE = gettext_noop("Tag")
# Translators: noun: an idea of what to try, shown to authors
CHALLENGE_TITLE = gettext_noop("Challenge")
"""What two slices are called; the others are called as the task calls them."""


@dataclass(frozen=True)
class Activity:
    """The numbers of a round's dashboard.

    waiting: number of examples that need votes. oldest: when the first of them was written.
    people: number of people who wrote or judged since 00:00 UTC.
    writing, judging: median seconds of the latest examples and votes, None if none was timed.
    days: (day, tries, fooled, catches), without empty days.
    labels: (the author's label, tries, confirmed); empty if authors choose no label.
    slices: (slice, its value, tries, confirmed), fewest confirmed first.
    agreement: (day, votes on examples with a consensus, votes that match it).
    fooled_judged: number of tries that fooled a model and have a vote.
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


def read_round_activity(round: Round) -> Activity:
    """Return a round's activity, from the cache if it was counted recently.

    Nine queries, and one for each slice of the task.
    """
    return read_or_count(f"activity:{round.pk}", lambda: count_activity(round))


def count_activity(round: Round) -> Activity:
    """Count a round's activity now.

    Imported examples and votes do not count as somebody's work on that day.
    """
    examples = _find_written_examples(round).filter(uid__isnull=True)
    votes = Validation.objects.filter(example__round=round, is_imported=False, by_program=False)
    queue = QueueItem.objects.filter(
        round=round, still_needed__gt=0, example__retracted_at__isnull=True
    ).aggregate(oldest=Min("example__created_at"))
    counted_at = timezone.now()
    began = midnight()
    today = Q(created_at__gte=began)
    # Two queries and no union: a person who writes and judges counts once.
    people = set(examples.filter(today).values_list("annotator", flat=True).distinct())
    people |= set(votes.filter(today).values_list("validator", flat=True).distinct())
    # It is empty where nobody measured when the writer saw the form.
    timed = examples.filter(shown_at__isnull=False).order_by("-pk")
    times = timed.values_list("shown_at", "created_at")[:MEDIAN_SAMPLE_SIZE]
    seconds = votes.filter(seconds__isnull=False).order_by("-pk").values_list("seconds", flat=True)
    since = began - timedelta(days=CHART_DAYS - 1)
    # Days without an example have no row; the chart fills them in.
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
        _compute_median(
            (sent_at - opened_at).total_seconds()  # type: ignore[operator]
            for opened_at, sent_at in times
        ),
        _compute_median(seconds[:MEDIAN_SAMPLE_SIZE]),
        list(days),
        _count_labels(round),
        _count_slices(round),
        counted_at,
        _count_agreement_by_day(votes.filter(created_at__gte=since)),
        _find_written_examples(round).filter(is_counted("fooled"), is_counted("judged")).count(),
    )


def _find_written_examples(round: Round) -> QuerySet[Example]:
    """Return the examples that people wrote in the round and did not retract."""
    return Example.objects.filter(is_try(), round=round)


def _compute_median(seconds: Iterable[Any]) -> float | None:
    values: list[float] = list(seconds)
    if not values:
        return None
    return median(values)


def _count_agreement_by_day(votes: QuerySet[Validation]) -> Sequence[tuple[date, int, int]]:
    decided_votes = votes.filter(example__consensus__state=Consensus.State.DECIDED)
    # A vote has a label or a verdict. The other column is empty, as in the consensus.
    is_same = Q(label=F("example__consensus__label"), verdict=F("example__consensus__verdict"))
    return list(
        decided_votes.annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(votes=Count("pk"), same=Count("pk", filter=is_same))
        .order_by("day")
    )


def _count_labels(round: Round) -> Sequence[tuple[str, int, int]]:
    config = round.task.config
    name = next((name for name in config.target_fields if config.labels(name)), None)
    if name is None:
        return []
    rows = (
        _find_written_examples(round)
        .values_list(KeyTextTransform(name, "inputs"))
        .annotate(**counts_of("confirmed"))
        .order_by()
    )
    counts_by_label = {label: (tries, confirmed) for label, tries, confirmed in rows}
    label_rows = []
    for label in config.labels(name):  # also labels that nobody has chosen yet
        tries, confirmed = counts_by_label.get(label.value, (0, 0))
        label_rows.append((label.words, tries, confirmed))
    return label_rows


def _count_slices(round: Round) -> Sequence[tuple[str, str, int, int]]:
    config = round.task.config
    slices: list[tuple[str, str, int, int]] = []
    if "tag" in config.slices:
        for value, tries, confirmed in _find_thinnest_values(round, "tag"):
            slices.append((TAG_TITLE, value, tries, confirmed))
    if "challenge" in config.slices and config.challenges:
        slices += _count_challenges(round)
    fields = [name for name in config.slices if name not in ("tag", "language", "challenge")]
    if round.task.is_sensitive:  # no page shows people's texts without a shield
        fields = [name for name in fields if config.labels(name)]
    for name in fields:
        title = config.component(name).others_title
        for value, tries, confirmed in _find_thinnest_values(round, name):
            slices.append((title, config.display(name, value), tries, confirmed))
    return [
        (title, Truncator(value).chars(80), tries, confirmed)
        for title, value, tries, confirmed in slices
        if value  # rows that lack the field
    ]


def _count_challenges(round: Round) -> list[Any]:
    """Return (title, challenge, tries, confirmed), including challenges without tries."""
    challenge_counts = (
        _find_written_examples(round)
        .filter(challenge__isnull=False)
        .values_list("challenge")
        .annotate(**counts_of("confirmed"))
        .order_by()
    )
    counts_by_challenge = {name: (tries, confirmed) for name, tries, confirmed in challenge_counts}
    rows = []
    for name in round.task.config.challenges:
        tries, confirmed = counts_by_challenge.get(name, (0, 0))
        rows.append((CHALLENGE_TITLE, name, tries, confirmed))
    return sorted(rows, key=lambda row: (row[3], row[2]))


def _find_thinnest_values(round: Round, name: str) -> Iterable[Any]:
    """Return (value, tries, confirmed) for the values with the fewest confirmed examples.

    Includes values of contexts without an example.
    """
    rows: Any = round.examples.all()
    value: Any = KeyTextTransform(name, "inputs")
    path = ""
    context_fields = {component.name for component in round.task.config.context}
    if name == "tag" or name in context_fields:
        # Counted from the contexts, so that those without an example are there with 0.
        rows = round.contexts.all()
        value = KeyTextTransform(name, "fields")
        path = "examples__"
    if name == "tag":
        value = F("tag")
    numbers = counts_of("confirmed", path=path)
    thinnest = rows.values_list(value).annotate(**numbers).order_by("confirmed", "tries")
    return cast(Iterable[Any], thinnest[:MAX_SLICE_VALUES])
