"""A round's activity for its dashboard: tries, votes and people."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from core.days import get_midnight
from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import get_policy
from validation.decisions.counted import (
    TryParts,
    build_counts,
    build_part_counts,
    build_try_condition,
)
from validation.judging.queue import count_waiting_examples
from validation.models import Consensus, QueueItem, Validation

CHART_DAYS = 30
MEDIAN_SAMPLE_SIZE = 500
"""The number of latest examples and votes from which medians are computed."""
MAX_SLICE_VALUES = 20
"""The maximum number of a slice's values to show. The values with the fewest examples are shown."""
# Translators: noun: a word that marks an example
TAG_TITLE = gettext_noop("Tag")
# Translators: noun: an idea of what to try, shown to authors
CHALLENGE_TITLE = gettext_noop("Challenge")
"""The titles of two slices. The task's configuration names the others."""


@dataclass(frozen=True)
class Activity:
    """The figures of a round's dashboard.

    waiting: the number of examples that need votes. oldest: when the oldest of them was written.

    people: the number of people who wrote or judged since 00:00 UTC.

    writing, judging: the median seconds of the latest examples and votes; None if none was timed.

    days: (day, tries, fooled, catches, parts) for each of the last CHART_DAYS days with tries.

    labels: (the author's label, tries, confirmed, catches); empty if authors choose no label.

    slices: (slice, its value, tries, confirmed), values with the fewest confirmed tries first.

    agreement: (day, votes on examples with a consensus, votes that match it).

    parts: all tries of the round by outcome.

    threshold: the share of equal votes that decides an example; None if the policy has none.
    """

    waiting: int
    oldest: datetime | None
    people: int
    writing: float | None
    judging: float | None
    days: Sequence[tuple[date, int, int, int, TryParts]]
    labels: Sequence[tuple[str, int, int, int]]
    slices: Sequence[tuple[str, str, int, int]]
    counted_at: datetime
    agreement: Sequence[tuple[date, int, int]] = ()
    parts: TryParts = field(default_factory=TryParts)
    threshold: float | None = None


def read_round_activity(round: Round) -> Activity:
    """Return a round's activity, from the cache if it was counted recently.

    If not, counting takes ten queries, and one for each slice of the task.
    """
    return read_or_count(f"activity:{round.pk}", lambda: count_activity(round))


def count_activity(round: Round) -> Activity:
    """Count a round's activity now.

    Imported examples and votes are left out, because nobody wrote or cast them on that day.
    """
    examples = _find_written_examples(round).filter(uid__isnull=True)
    votes = Validation.objects.filter(example__round=round, is_imported=False, by_program=False)
    queue = QueueItem.objects.filter(
        round=round, still_needed__gt=0, example__retracted_at__isnull=True
    ).aggregate(oldest=Min("example__created_at"))
    counted_at = timezone.now()
    day_start = get_midnight()
    is_today = Q(created_at__gte=day_start)
    # Two queries and no union: a person who writes and judges counts once.
    people = set(examples.filter(is_today).values_list("annotator", flat=True).distinct())
    people |= set(votes.filter(is_today).values_list("validator", flat=True).distinct())
    # It is empty where nobody measured when the writer saw the form.
    timed_examples = examples.filter(shown_at__isnull=False).order_by("-pk")
    times = timed_examples.values_list("shown_at", "created_at")[:MEDIAN_SAMPLE_SIZE]
    seconds = votes.filter(seconds__isnull=False).order_by("-pk").values_list("seconds", flat=True)
    since = day_start - timedelta(days=CHART_DAYS - 1)
    # Days without an example have no row; the chart fills them in.
    # Only what was written here: imports come all on one day.
    day_rows = (
        examples.filter(created_at__gte=since)
        .annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(**build_counts("fooled", "catches"), **build_part_counts())
        .order_by("day")
    )
    days = []
    for day, tries, fooled, catches, *parts in day_rows:
        days.append((day, tries, fooled, catches, TryParts(*parts)))
    return Activity(
        count_waiting_examples([round])[round.pk],
        queue["oldest"],
        len(people - {None}),
        _compute_median(
            (sent_at - opened_at).total_seconds()  # type: ignore[operator]
            for opened_at, sent_at in times
        ),
        _compute_median(seconds[:MEDIAN_SAMPLE_SIZE]),
        days,
        _count_labels(round),
        _count_slices(round),
        counted_at,
        _count_agreement_by_day(votes.filter(created_at__gte=since)),
        TryParts(*_find_written_examples(round).aggregate(**build_part_counts()).values()),
        find_deciding_share(get_policy(round)),
    )


def find_deciding_share(policy: Policy) -> float | None:
    """Return the share of equal votes by which a policy decides an example; None if it has none."""
    if policy.rule in ("strict", "plurality"):
        return 0.5
    if policy.rule in ("n-equal", "at-least") and policy.of:
        return policy.needed / policy.of
    # Without a maximum, any share may decide in the end, and a posterior is no share of votes.
    return None


def _find_written_examples(round: Round) -> QuerySet[Example]:
    """Return the tries that people wrote in the round."""
    return Example.objects.filter(build_try_condition(), round=round)


def _compute_median(seconds: Iterable[Any]) -> float | None:
    values: list[float] = list(seconds)
    if not values:
        return None
    return median(values)


def _count_agreement_by_day(votes: QuerySet[Validation]) -> Sequence[tuple[date, int, int]]:
    decided_votes = votes.filter(example__consensus__state=Consensus.State.DECIDED)
    # A vote has a label or a verdict. The other column is empty, as in the consensus.
    matches_consensus = Q(
        label=F("example__consensus__label"), verdict=F("example__consensus__verdict")
    )
    return list(
        decided_votes.annotate(day=TruncDate("created_at"))
        .values_list("day")
        .annotate(votes=Count("pk"), same=Count("pk", filter=matches_consensus))
        .order_by("day")
    )


def _count_labels(round: Round) -> Sequence[tuple[str, int, int, int]]:
    config = round.task.config
    name = next((name for name in config.target_fields if config.get_labels(name)), None)
    if name is None:
        return []
    rows = (
        _find_written_examples(round)
        .values_list(KeyTextTransform(name, "inputs"))
        .annotate(**build_counts("confirmed", "catches"))
        .order_by()
    )
    counts_by_label = {}
    for label, *counts in rows:
        counts_by_label[label] = counts
    label_rows = []
    for label in config.get_labels(name):  # also labels that nobody has chosen yet
        tries, confirmed, catches = counts_by_label.get(label.value, (0, 0, 0))
        label_rows.append((label.words, tries, confirmed, catches))
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
        fields = [name for name in fields if config.get_labels(name)]
    for name in fields:
        title = config.get_component(name).third_person_title
        for value, tries, confirmed in _find_thinnest_values(round, name):
            slices.append((title, config.display(name, value), tries, confirmed))
    return [
        (title, Truncator(value).chars(80), tries, confirmed)
        for title, value, tries, confirmed in slices
        if value  # rows that lack the field
    ]


def _count_challenges(round: Round) -> list[Any]:
    """Return (title, challenge, tries, confirmed) for each challenge, even without tries."""
    challenge_counts = (
        _find_written_examples(round)
        .filter(challenge__isnull=False)
        .values_list("challenge")
        .annotate(**build_counts("confirmed"))
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

    At most MAX_SLICE_VALUES. Includes the values of contexts without an example. name: the slice.
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
    counts = build_counts("confirmed", path=path)
    thinnest_rows = rows.values_list(value).annotate(**counts).order_by("confirmed", "tries")
    return cast(Iterable[Any], thinnest_rows[:MAX_SLICE_VALUES])
