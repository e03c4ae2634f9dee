"""Numbers about each author's writing and each validator's judging, for the task's owners.

docs/statistics.md, “People”, defines each number. What their programs wrote or judged is in none.
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
from validation.consensus.gold_check import Check, gold_check
from validation.consensus.reading import LEAST_VOTES, WORDS_A_SECOND, reads_too_little
from validation.decisions.counted import counts_of, is_counted, is_try
from validation.models import GoldAnswer, Skip, Validation, Verdict
from validation.rates.agreement import MOST_CHOICES, Reliability, code_votes, reliabilities
from validation.rates.rates import Rate, Undefined, rate
from validation.statistics.report import FREE_TEXT

UNKNOWN_TYPING = "no browser told how the texts were typed"
NOT_TIMED = Undefined("no time was measured")
NO_LABELS = Undefined("nobody else judged the same examples")


@dataclass(frozen=True, slots=True)
class AuthorStatistics:
    """Statistics of one author's examples, without retracted ones.

    wins: fooling examples, one for each chain of edits. validity: verified of decided. vmer:
    validated model errors of all tries. duplicates: tries that nearly equal another person's
    earlier text. paste_share: texts of which more than half was pasted, of those with known typing.
    median_seconds: from shown to submitted; median_active_seconds: of typing. label_flip: decided
    against the author's label.
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
    """Statistics of one validator's votes on examples that are not retracted, without gold items.

    reliability: leave-one-out agreement with the others, kappa: its part beyond chance. gold: the
    correct answers to gold items, of all. gold_check: only of those since the last refresher.
    median_seconds: from the lease to the answer. unread: votes that came faster than anybody
    reads, of those with a time and words.
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


def author_statistics(rounds: Sequence[Round]) -> list[AuthorStatistics]:
    """Return statistics of each known author of the rounds, most tries first. Three queries.

    Memory: the people, and one number for each example.
    """
    examples = Example.objects.filter(is_try(), round__in=rounds, annotator__isnull=False)
    people = _people(examples.values("annotator"))
    writing = _writing(examples)
    authors = [
        _build_author_row(people[row["annotator"]], writing[row["annotator"]], row)
        for row in _author_counts(examples)
    ]
    return sorted(authors, key=lambda author: (-author.tries, author.annotator.pseudonym))


@dataclass
class _Writing:
    """Sums over one author's examples."""

    # Four bytes a value, as a round may have a million examples.
    seconds: "array[float]" = field(default_factory=lambda: array("f"))
    active: "array[float]" = field(default_factory=lambda: array("f"))
    pasted: int = 0
    won: set[int] = field(default_factory=set)  # the first examples of chains


def _writing(examples: QuerySet[Example]) -> Mapping[int, _Writing]:
    """Collect the sums over examples by author.

    An edit comes after the example that it edits, so one pass finds where chains begin.
    """
    writing_by_author: dict[int, _Writing] = defaultdict(_Writing)
    chain_starts: dict[int, tuple[int, int]] = {}  # example: where its chain began, author
    rows = examples.order_by("pk").values_list(
        "pk", "annotator", "parent", "outcome", "shown_at", "created_at", "typing"
    )
    for pk, author_id, parent, outcome, shown_at, sent_at, typing_record in rows.iterator():
        start, author = chain_starts.get(parent, (pk, author_id))  # type: ignore[arg-type]
        # Others' examples begin no own chain.
        chain_starts[pk] = (start if author == author_id else pk), author_id
        writing = writing_by_author[author_id]
        if outcome == Example.Outcome.FOOLED:
            writing.won.add(chain_starts[pk][0])
        if shown_at:
            writing.seconds.append((sent_at - shown_at).total_seconds())
        if typing_record:
            writing.active.append(typing_record["active"])
            writing.pasted += typing_record["pasted"] * 2 > typing_record["characters"]
    return writing_by_author


def _author_counts(examples: QuerySet[Example]) -> Any:
    is_flipped = is_counted("decided") & Q(consensus__is_verified=False)
    opposed = (Verdict.CORRECT, Verdict.INCORRECT)  # of a model's answer the author said either
    says_otherwise = ~Q(consensus__label="") | Q(consensus__verdict__in=opposed)
    return (
        examples.order_by()
        .values("annotator")
        .annotate(
            **counts_of("fooled", "judged", "decided", "confirmed", "catches"),
            duplicates=Count("resembles"),
            flipped=Count("pk", filter=is_flipped & says_otherwise),
        )
    )


def _build_author_row(
    annotator: Annotator, writing: _Writing, counts: Mapping[str, int]
) -> AuthorStatistics:
    undecided_reason = "no example has a consensus"
    judged_count = counts["judged"]
    vmer = rate(counts["catches"], counts["tries"])
    # Nothing is decided yet: 0 % would read like a result.
    if not counts["decided"]:
        vmer = Undefined(undecided_reason if judged_count else "no example has been judged")
    return AuthorStatistics(
        annotator,
        counts["tries"],
        counts["fooled"],
        len(writing.won),
        judged_count,
        validity=rate(counts["confirmed"], counts["decided"], undecided_reason),
        vmer=vmer,
        duplicates=counts["duplicates"],
        paste_share=rate(writing.pasted, len(writing.active), UNKNOWN_TYPING),
        median_seconds=median(writing.seconds) if writing.seconds else NOT_TIMED,
        median_active_seconds=median(writing.active)
        if writing.active
        else Undefined(UNKNOWN_TYPING),
        label_flip=rate(counts["flipped"], counts["decided"], undecided_reason),
    )


class Pace(NamedTuple):
    """The number of a person's timed votes, and of those cast faster than anybody reads."""

    timed: int = 0
    unread: int = 0

    @property
    def check(self) -> Check:
        """Return the check; if it fails, an owner should look at the person's votes."""
        if self.timed < LEAST_VOTES:
            return Check.UNKNOWN
        return Check.FAIL if reads_too_little(self.unread, self.timed) else Check.PASS


def counted_paces() -> dict[str, Count]:
    """Return the aggregates over votes that make a `Pace`.

    A vote is unread if its words cannot have been read in its time, by WORDS_A_SECOND.
    """
    is_timed = Q(seconds__isnull=False, words__isnull=False)
    # As decimals: whole numbers would be divided without their fraction.
    is_unread = is_timed & Q(seconds__lt=Cast("words", FloatField()) / WORDS_A_SECOND)
    return {"timed": Count("pk", filter=is_timed), "unread": Count("pk", filter=is_unread)}


def validator_statistics(rounds: Sequence[Round]) -> list[ValidatorStatistics]:
    """Return statistics of each known validator of the rounds, most votes first. Six queries.

    Memory: the people, and some numbers for each vote.
    """
    # In a fixed order, so that the same votes give the same numbers.
    votes = Validation.objects.filter(
        example__round__in=rounds, example__retracted_at__isnull=True, by_program=False
    ).order_by("pk")
    named_votes = votes.filter(validator__isnull=False)
    people = _people(named_votes.values("validator"))
    answers: dict[int, Counter[str]] = defaultdict(Counter)
    paces: dict[int, Pace] = defaultdict(Pace)
    # Without that order, by which the rows would be grouped too.
    by_verdict: Any = named_votes.order_by().values_list("validator", "verdict")
    by_verdict = by_verdict.annotate(times=Count("pk"), **counted_paces())
    for validator_id, verdict, times, timed, unread in by_verdict:
        answers[validator_id][verdict] += times
        paces[validator_id] = Pace(
            paces[validator_id].timed + timed, paces[validator_id].unread + unread
        )
    seconds = _medians(named_votes.values_list("validator", "seconds").iterator())
    skips = Counter(
        Skip.objects.filter(example__round__in=rounds).values_list("validator", flat=True)
    )
    reliable = _reliabilities(votes)
    golden = _gold(rounds)
    validators = [
        _validator(
            people[validator_id],
            verdicts,
            seconds,
            paces[validator_id],
            skips[validator_id],
            reliable,
            golden[validator_id],
        )
        for validator_id, verdicts in answers.items()
    ]
    return sorted(validators, key=lambda judge: (-judge.votes, judge.annotator.pseudonym))


def _validator(
    annotator: Annotator,
    verdicts: Counter[str],
    seconds: Mapping[int, float],
    pace: Pace,
    skips: int,
    reliable: Mapping[int, Reliability] | Undefined,
    golden: Counter[str],
) -> ValidatorStatistics:
    own_reliability = (
        reliable if isinstance(reliable, Undefined) else reliable.get(annotator.pk, NO_LABELS)
    )
    votes = verdicts.total()
    return ValidatorStatistics(
        annotator,
        votes,
        reliability=own_reliability
        if isinstance(own_reliability, Undefined)
        else own_reliability.agreement,
        kappa=own_reliability if isinstance(own_reliability, Undefined) else own_reliability.kappa,
        gold=rate(golden["correct"], golden["answered"], "no gold item was answered"),
        gold_check=gold_check(golden["correct that count"], golden["count"]),
        median_seconds=seconds.get(annotator.pk, NOT_TIMED),
        unread=rate(pace.unread, pace.timed, NOT_TIMED.reason),
        reading_check=pace.check,
        cannot_tell=rate(verdicts[Verdict.CANNOT_TELL], votes),
        flags=verdicts[Verdict.FLAGGED],
        skips=skips,
    )


def _reliabilities(votes: QuerySet[Validation]) -> Mapping[int, Reliability] | Undefined:
    """Return the agreement of validators' labels, or of their verdicts if nobody gave a label.

    Ignores free text. One query.
    """
    rows = list(votes.values_list("example", "validator", "label", "verdict").iterator())
    labels = [(example, validator_id, label) for example, validator_id, label, _ in rows if label]
    if len({label for *_, label in labels}) > MOST_CHOICES:
        return Undefined(FREE_TEXT)
    verdicts = [
        (example, validator_id, verdict)
        for example, validator_id, _, verdict in rows
        if verdict not in ("", Verdict.CANNOT_TELL)
    ]
    return reliabilities(code_votes(labels or verdicts))  # type: ignore[return-value]


def _gold(rounds: Sequence[Round]) -> Mapping[int, Counter[str]]:
    """Count each validator's answers to gold items: all, and those since their last refresher."""
    counts_by_validator: dict[int, Counter[str]] = defaultdict(Counter)
    answers = GoldAnswer.objects.filter(gold__example__round__in=rounds, by_program=False)
    for who, correct, counts in answers.values_list("validator", "is_correct", "counts"):
        counts_by_validator[who].update({"answered": 1, "correct": correct, "count": counts})
        counts_by_validator[who]["correct that count"] += correct and counts
    return counts_by_validator


def _people(ids: QuerySet) -> Mapping[int, Annotator]:  # type: ignore[type-arg]
    return {annotator.pk: annotator for annotator in Annotator.objects.filter(pk__in=ids)}


def _medians(rows: Iterable[tuple[int, float | None]]) -> Mapping[int, float]:
    """Return each person's median time in seconds."""
    times: dict[int, array[float]] = defaultdict(lambda: array("f"))
    for person_id, seconds in rows:
        if seconds is not None:
            times[person_id].append(seconds)
    return {person_id: median(values) for person_id, values in times.items()}
