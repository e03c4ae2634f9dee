"""Numbers about each author's writing and each validator's judging, for the task's owners.

docs/statistics.md, “People”, defines each number. The work of programs is in none of them.
Nothing here pays, pauses or excludes anybody.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Count, FloatField, Q, QuerySet
from django.db.models.functions import Cast

from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Round
from validation.consensus.gold_check import Check, assess_gold_answers
from validation.consensus.reading import MIN_TIMED_VOTES, WORDS_PER_SECOND, has_read_too_little
from validation.decisions.counted import build_counts, build_measure_condition, build_try_condition
from validation.models import GoldAnswer, Skip, Validation, Verdict
from validation.rates.agreement import MAX_CHOICES, Reliability, compute_reliabilities, encode_votes
from validation.rates.rates import Rate, Undefined, compute_rate
from validation.statistics.report import FREE_TEXT_REASON

UNKNOWN_TYPING_REASON = "no browser reported how the texts were typed"
NOT_TIMED = Undefined("no time was measured")
NO_LABELS = Undefined("no one else judged the same examples")


@dataclass(frozen=True, slots=True)
class AuthorStatistics:
    """Statistics of one author's examples, without retracted ones.

    wins: number of fooling examples, one for each chain of edits. validity: share of decided
    examples that are verified. vmer: share of all tries that are validated model errors.
    duplicates: number of tries that nearly equal another person's earlier text. paste_share: share
    of texts of which more than half was pasted, among texts with known typing. median_seconds: time
    from the assignment to the submission. median_active_seconds: time spent typing. label_flip:
    share of decided examples that were decided against the author's label.
    """

    annotator: Annotator
    tries: int
    fooled: int
    wins: int
    judged: int
    validity: Rate | Undefined
    vmer: Rate | Undefined
    duplicates: int
    paste_share: Rate | Undefined
    median_seconds: float | Undefined
    median_active_seconds: float | Undefined
    label_flip: Rate | Undefined


@dataclass(frozen=True, slots=True)
class ValidatorStatistics:
    """Statistics of one validator's votes, without retracted examples and gold items.

    reliability: leave-one-out agreement with the other validators. kappa: the same, corrected for
    chance. gold: share of gold items answered correctly. gold_check: the check of the answers since
    the last refresher. median_seconds: median time from the lease to the answer. unread: share of
    votes given faster than anybody reads, among votes with a known time and number of words.
    """

    annotator: Annotator
    votes: int
    reliability: Rate | Undefined
    kappa: float | Undefined
    gold: Rate | Undefined
    gold_check: Check
    median_seconds: float | Undefined
    unread: Rate | Undefined
    reading_check: Check
    cannot_tell: Rate | Undefined
    flags: int
    skips: int


def list_author_statistics(rounds: Sequence[Round]) -> list[AuthorStatistics]:
    """Return statistics of each known author of the rounds, most tries first. Three queries.

    Memory: the people, and one number for each example.
    """
    examples = Example.objects.filter(
        build_try_condition(), round__in=rounds, annotator__isnull=False
    )
    people = _find_people(examples.values("annotator"))
    writing = _measure_writing(examples)
    authors = [
        _build_author_row(people[row["annotator"]], writing[row["annotator"]], row)
        for row in _count_by_author(examples)
    ]
    return sorted(authors, key=lambda author: (-author.tries, author.annotator.pseudonym))


@dataclass
class _WritingRecord:
    """The data collected from one author's examples to compute their statistics."""

    # Four bytes per value, because a round may have a million examples.
    seconds: "array[float]" = field(default_factory=lambda: array("f"))
    active_seconds: "array[float]" = field(default_factory=lambda: array("f"))
    pasted_count: int = 0
    fooling_chains: set[int] = field(default_factory=set)  # the first examples of chains


def _measure_writing(examples: QuerySet[Example]) -> Mapping[int, _WritingRecord]:
    """Collect the sums over examples by author.

    An edit comes after the example that it edits, so one pass finds where chains begin.
    """
    writing_by_author: dict[int, _WritingRecord] = defaultdict(_WritingRecord)
    chain_starts: dict[int, tuple[int, int]] = {}  # by example: (start of its chain, author)
    rows = examples.order_by("pk").values_list(
        "pk", "annotator", "parent", "outcome", "shown_at", "created_at", "typing"
    )
    for pk, author_id, parent, outcome, shown_at, sent_at, typing_record in rows.iterator():
        start, author = chain_starts.get(parent, (pk, author_id))  # type: ignore[arg-type]
        # Examples by others do not start a chain of one's own.
        chain_starts[pk] = (start if author == author_id else pk), author_id
        writing = writing_by_author[author_id]
        if outcome == Example.Outcome.FOOLED:
            writing.fooling_chains.add(chain_starts[pk][0])
        if shown_at:
            writing.seconds.append((sent_at - shown_at).total_seconds())
        if typing_record:
            writing.active_seconds.append(typing_record["active"])
            writing.pasted_count += typing_record["pasted"] * 2 > typing_record["characters"]
    return writing_by_author


def _count_by_author(examples: QuerySet[Example]) -> Any:
    is_flipped = build_measure_condition("decided") & Q(consensus__is_verified=False)
    opposing_votes = (
        Verdict.CORRECT,
        Verdict.INCORRECT,
    )  # the author's claim about a model's answer
    has_opposing_majority = ~Q(consensus__label="") | Q(consensus__verdict__in=opposing_votes)
    return (
        examples.order_by()
        .values("annotator")
        .annotate(
            **build_counts("fooled", "judged", "decided", "confirmed", "catches"),
            duplicates=Count("resembles"),
            flipped=Count("pk", filter=is_flipped & has_opposing_majority),
        )
    )


def _build_author_row(
    annotator: Annotator, writing: _WritingRecord, counts: Mapping[str, int]
) -> AuthorStatistics:
    undecided_reason = "no example has a consensus"
    judged_count = counts["judged"]
    vmer = compute_rate(counts["catches"], counts["tries"])
    # Nothing is decided yet, and 0 % would look like a result.
    if not counts["decided"]:
        vmer = Undefined(undecided_reason if judged_count else "no example has been judged")
    return AuthorStatistics(
        annotator,
        counts["tries"],
        counts["fooled"],
        len(writing.fooling_chains),
        judged_count,
        validity=compute_rate(counts["confirmed"], counts["decided"], undecided_reason),
        vmer=vmer,
        duplicates=counts["duplicates"],
        paste_share=compute_rate(
            writing.pasted_count, len(writing.active_seconds), UNKNOWN_TYPING_REASON
        ),
        median_seconds=median(writing.seconds) if writing.seconds else NOT_TIMED,
        median_active_seconds=median(writing.active_seconds)
        if writing.active_seconds
        else Undefined(UNKNOWN_TYPING_REASON),
        label_flip=compute_rate(counts["flipped"], counts["decided"], undecided_reason),
    )


class Pace(NamedTuple):
    """The number of a person's timed votes, and of those cast faster than anybody reads."""

    timed: int = 0
    unread: int = 0

    @property
    def check(self) -> Check:
        """Return the check's result. If it fails, an owner should look at the person's votes."""
        if self.timed < MIN_TIMED_VOTES:
            return Check.UNKNOWN
        return Check.FAIL if has_read_too_little(self.unread, self.timed) else Check.PASS


def build_pace_counts() -> dict[str, Count]:
    """Return the aggregates over votes for the fields of a `Pace`.

    A vote counts as unread if the time spent is too short to read the text at WORDS_PER_SECOND.
    """
    is_timed = Q(seconds__isnull=False, words__isnull=False)
    # As floats, because integer division would drop the fraction.
    is_unread = is_timed & Q(seconds__lt=Cast("words", FloatField()) / WORDS_PER_SECOND)
    return {"timed": Count("pk", filter=is_timed), "unread": Count("pk", filter=is_unread)}


def list_validator_statistics(rounds: Sequence[Round]) -> list[ValidatorStatistics]:
    """Return statistics of each known validator of the rounds, most votes first. Six queries.

    Memory: the people, and some numbers for each vote.
    """
    # In a fixed order, so that the same votes give the same numbers.
    votes = Validation.objects.filter(
        example__round__in=rounds, example__retracted_at__isnull=True, by_program=False
    ).order_by("pk")
    named_votes = votes.filter(validator__isnull=False)
    people = _find_people(named_votes.values("validator"))
    answers: dict[int, Counter[str]] = defaultdict(Counter)
    paces: dict[int, Pace] = defaultdict(Pace)
    # Without the default order, by which the rows would be grouped too.
    by_verdict: Any = named_votes.order_by().values_list("validator", "verdict")
    by_verdict = by_verdict.annotate(times=Count("pk"), **build_pace_counts())
    for validator_id, verdict, case_count, timed, unread in by_verdict:
        answers[validator_id][verdict] += case_count
        paces[validator_id] = Pace(
            paces[validator_id].timed + timed, paces[validator_id].unread + unread
        )
    seconds = _compute_medians(named_votes.values_list("validator", "seconds").iterator())
    skips = Counter(
        Skip.objects.filter(example__round__in=rounds).values_list("validator", flat=True)
    )
    reliabilities = _compute_reliabilities(votes)
    gold_counts = _count_gold(rounds)
    validators = [
        _build_validator_row(
            people[validator_id],
            verdicts,
            seconds,
            paces[validator_id],
            skips[validator_id],
            reliabilities,
            gold_counts[validator_id],
        )
        for validator_id, verdicts in answers.items()
    ]
    return sorted(validators, key=lambda judge: (-judge.votes, judge.annotator.pseudonym))


def _build_validator_row(
    annotator: Annotator,
    verdicts: Counter[str],
    seconds: Mapping[int, float],
    pace: Pace,
    skips: int,
    reliabilities: Mapping[int, Reliability] | Undefined,
    gold_counts: Counter[str],
) -> ValidatorStatistics:
    own_reliability = (
        reliabilities
        if isinstance(reliabilities, Undefined)
        else reliabilities.get(annotator.pk, NO_LABELS)
    )
    votes = verdicts.total()
    return ValidatorStatistics(
        annotator,
        votes,
        reliability=own_reliability
        if isinstance(own_reliability, Undefined)
        else own_reliability.agreement,
        kappa=own_reliability if isinstance(own_reliability, Undefined) else own_reliability.kappa,
        gold=compute_rate(
            gold_counts["correct"], gold_counts["answered"], "no gold item was answered"
        ),
        gold_check=assess_gold_answers(gold_counts["correct that count"], gold_counts["count"]),
        median_seconds=seconds.get(annotator.pk, NOT_TIMED),
        unread=compute_rate(pace.unread, pace.timed, NOT_TIMED.reason),
        reading_check=pace.check,
        cannot_tell=compute_rate(verdicts[Verdict.CANNOT_TELL], votes),
        flags=verdicts[Verdict.FLAGGED],
        skips=skips,
    )


def _compute_reliabilities(votes: QuerySet[Validation]) -> Mapping[int, Reliability] | Undefined:
    """Return the agreement of validators' labels, or of their verdicts if nobody gave a label.

    Ignores free text. One query.
    """
    rows = list(votes.values_list("example", "validator", "label", "verdict").iterator())
    labels = [(example, validator_id, label) for example, validator_id, label, _ in rows if label]
    if len({label for *_, label in labels}) > MAX_CHOICES:
        return Undefined(FREE_TEXT_REASON)
    verdicts = [
        (example, validator_id, verdict)
        for example, validator_id, _, verdict in rows
        if verdict not in ("", Verdict.CANNOT_TELL)
    ]
    return compute_reliabilities(encode_votes(labels or verdicts))  # type: ignore[return-value]


def _count_gold(rounds: Sequence[Round]) -> Mapping[int, Counter[str]]:
    """Count each validator's answers to gold items: all, and those since their last refresher."""
    counts_by_validator: dict[int, Counter[str]] = defaultdict(Counter)
    answers = GoldAnswer.objects.filter(gold__example__round__in=rounds, by_program=False)
    for validator, is_correct, counts in answers.values_list("validator", "is_correct", "counts"):
        counts_by_validator[validator].update(
            {"answered": 1, "correct": is_correct, "count": counts}
        )
        counts_by_validator[validator]["correct that count"] += is_correct and counts
    return counts_by_validator


def _find_people(annotator_ids: QuerySet) -> Mapping[int, Annotator]:  # type: ignore[type-arg]
    return {annotator.pk: annotator for annotator in Annotator.objects.filter(pk__in=annotator_ids)}


def _compute_medians(rows: Iterable[tuple[int, float | None]]) -> Mapping[int, float]:
    """Return each person's median time in seconds."""
    case_count: dict[int, array[float]] = defaultdict(lambda: array("f"))
    for person_id, seconds in rows:
        if seconds is not None:
            case_count[person_id].append(seconds)
    return {person_id: median(values) for person_id, values in case_count.items()}
