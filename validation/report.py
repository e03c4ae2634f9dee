"""The numbers of a task's rounds, from a few aggregate queries and the pure functions.

docs/statistics.md defines each of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from annotation.models import Example
from tasks.models import Round
from validation.agreement import fleiss_kappa, krippendorff_alpha, majority_share, unanimous_share
from validation.consensus import Policy
from validation.models import Consensus, Validation
from validation.redecide import decided
from validation.statistics import Collected, Rate, Undefined, round_rates

MOST_CHOICES = 60
"""Beyond so many different answers they are free text."""
FREE_TEXT = f"more than {MOST_CHOICES} different answers were given: agreement is about labels"

Choice = tuple[str, str]
"""Label and verdict of a vote."""
Number = int | float | Rate | Undefined | Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class Cell:
    """What the examples that one count stands for have in common."""

    author: int | None
    outcome: str
    judged: bool
    decided: bool
    winner: str  # label or verdict, where decided
    verified: bool
    validated_error: bool

    def counted(self, times: int) -> Collected:
        """The cell as `statistics.round_rates` takes it."""
        known = self.outcome in (Example.Outcome.FOOLED, Example.Outcome.NOT_FOOLED)
        return Collected(
            collected=times,
            with_outcome=times * known,
            fooled=times * (self.outcome == Example.Outcome.FOOLED),
            with_model=times * (self.outcome != Example.Outcome.NO_MODEL),
            judged=times * self.judged,
            decided=times * self.decided,
            verified=times * self.verified,
            verified_fooled=times * self.validated_error,
        )


@dataclass
class Part:
    """Everything that is counted of a round, or of several."""

    cells: Counter[Cell] = field(default_factory=Counter)
    votes_by: Counter[tuple[int | None, Choice]] = field(default_factory=Counter)
    patterns: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """How many examples have so many votes for each choice."""

    def __iadd__(self, other: "Part") -> "Part":
        self.cells += other.cells
        self.votes_by += other.votes_by
        self.patterns += other.patterns
        return self


def task_report(
    rounds: Sequence[Round], *, code: str, policy: Policy | None = None
) -> dict[str, Any]:
    """The numbers of each round and of all together, ready for JSON.

    With a policy all is decided anew by it, in memory; else what is stored counts.
    """
    parts = {round.pk: Part() for round in rounds}
    _count_votes(parts)
    choices = sorted({choice for part in parts.values() for _, choice in part.votes_by})
    _count_patterns(parts, choices)
    for round in rounds if policy else ():
        assert policy
        parts[round.pk].cells.update(_decided_cells(round, policy))
    if not policy:
        _count_stored(parts)
    everything = Part()
    for part in parts.values():
        everything += part
    whole = {"round": None, **numbers(everything, choices)}
    whole["notes"] = {"round": "all rounds together", **whole["notes"]}
    return {
        "task": code,
        "rounds": [{"round": r.number, **numbers(parts[r.pk], choices)} for r in rounds],
        "all": whole,
    }


def numbers(part: Part, choices: Sequence[Choice]) -> dict[str, Any]:
    """Every number of a part. What cannot be computed is None, with its reason under `notes`."""
    authors = list(_authors(part.cells))
    total = sum_of(authors)
    found: dict[str, Number] = {
        "collected": total.collected,
        "judged": total.judged,
        "decided": total.decided,
        "verified": total.verified,
        **_rates(authors, total),
        **_labels(part.cells),
        **_agreement(part, choices),
        **_people(part),
    }
    order = (
        *("collected", "fooled", "judged", "decided", "verified", "verified_fooled"),
        *("mer", "vmer", "fooled_of_decided", "consensus_labels", "majority_share"),
        *("unanimous_share", "fleiss_kappa", "krippendorff_alpha"),
        *("validators", "authors", "votes"),
    )
    notes = {name: v.reason for name in order if isinstance(v := found[name], Undefined)}
    return {**{name: _shown(found[name]) for name in order}, "notes": notes}


def sum_of(authors: Iterable[Collected]) -> Collected:
    """The counts of several authors together."""
    names = Collected.__dataclass_fields__
    sums = dict.fromkeys(names, 0)
    for author in authors:
        for name in names:
            sums[name] += getattr(author, name)
    return Collected(**sums)


def _authors(cells: Mapping[Cell, int]) -> Iterator[Collected]:
    """Counts of each known author; each example of an unknown one apart."""
    known: dict[int, list[Collected]] = {}
    for cell, times in cells.items():
        if cell.author is None:
            yield from [cell.counted(1)] * times
        else:
            known.setdefault(cell.author, []).append(cell.counted(times))
    for parts in known.values():
        yield parts[0] if len(parts) == 1 else sum_of(parts)


def _rates(authors: Sequence[Collected], total: Collected) -> dict[str, Number]:
    rates = round_rates(authors)
    mer, vmer = rates["mer"], rates["vmer"]
    return {
        "fooled": mer if isinstance(mer, Undefined) else total.fooled,
        "mer": mer,
        "verified_fooled": vmer if isinstance(vmer, Undefined) else total.verified_fooled,
        "vmer": vmer,
        "fooled_of_decided": rates["fooled_of_decided"],
    }


def _labels(cells: Mapping[Cell, int]) -> dict[str, Number]:
    """Consensus labels (or verdicts) and `none`, over judged examples and those decided without."""
    labels: Counter[str] = Counter()
    judged = with_consensus = 0
    for cell, times in cells.items():
        if cell.decided:
            labels[cell.winner] += times
        elif cell.judged:
            labels["none"] += times
        judged += times * cell.judged
        with_consensus += times * (cell.judged and cell.decided)
    named = {name: labels[name] for name in sorted(labels) if name != "none"}
    return {
        "consensus_labels": {**named, "none": labels["none"]},
        "majority_share": majority_share(with_consensus, judged),
    }


def _agreement(part: Part, choices: Sequence[Choice]) -> dict[str, Number]:
    """Agreement over labels; over verdicts where nobody gave a label."""
    import numpy as np

    width = max(map(len, part.patterns), default=len(choices))
    table = np.zeros((len(part.patterns), width))
    for row, pattern in enumerate(part.patterns):
        table[row, : len(pattern)] = pattern
    weights = np.array(list(part.patterns.values()))
    unanimous = unanimous_share(table, weights)
    if len(choices) > MOST_CHOICES:
        return {
            "unanimous_share": unanimous,
            "fleiss_kappa": Undefined(FREE_TEXT),
            "krippendorff_alpha": Undefined(FREE_TEXT),
        }
    labels = [n for n, (label, _) in enumerate(choices) if label]
    verdicts = [n for n, (_, verdict) in enumerate(choices) if verdict not in ("", "cannot_tell")]
    counted = table[:, labels if table[:, labels].any() else verdicts]
    return {
        "unanimous_share": unanimous,
        "fleiss_kappa": fleiss_kappa(counted, weights),
        "krippendorff_alpha": krippendorff_alpha(counted, weights),
    }


def _people(part: Part) -> dict[str, Number]:
    """Each vote of an unknown person is by another one; unknown authors cannot be counted."""
    validators = {who for who, _ in part.votes_by}
    unknown = sum(times for (who, _), times in part.votes_by.items() if who is None)
    authors = {cell.author for cell in part.cells} - {None}
    nobody = part.cells and not authors
    return {
        "validators": len(validators - {None}) + unknown,
        "authors": Undefined("no example's author is known") if nobody else len(authors),
        "votes": part.votes_by.total(),
    }


def _shown(value: Number) -> Any:
    if isinstance(value, Undefined):
        return None
    if isinstance(value, Rate):
        names = ("value", "low", "high", "n", "method")
        return {name: getattr(value, name) for name in names}
    return value


# Queries


def _count_stored(parts: Mapping[int, Part]) -> None:
    """One row for each combination of what `Cell` holds, by round."""
    names = ("round_id", "annotator_id", "outcome")
    rows = (
        Example.objects.filter(round__in=parts, retracted_at__isnull=True)
        .order_by()
        .annotate(judged=Q(consensus__votes__gt=0))
        .values_list(
            *names,
            "judged",
            *(f"consensus__{n}" for n in ("state", "label", "verdict")),
            *(f"consensus__{n}" for n in ("is_verified", "is_validated_error")),
        )
        .annotate(times=Count("pk"))
    )
    for round, author, outcome, judged, state, label, verdict, verified, wrong, times in rows:
        cell = Cell(
            author,
            outcome,
            bool(judged),
            state == Consensus.State.DECIDED,
            label or verdict or "",
            bool(verified),
            bool(wrong),
        )
        parts[round].cells[cell] += times


def _decided_cells(round: Round, policy: Policy) -> Counter[Cell]:
    return Counter(
        Cell(
            case.annotator_id,
            case.outcome,
            case.votes > 0,
            case.decision.state == "decided",
            case.decision.label or case.decision.verdict or "",
            case.is_verified,
            case.is_validated_error,
        )
        for case in decided(round, policy)
    )


def _count_votes(parts: Mapping[int, Part]) -> None:
    rows = (
        Validation.objects.filter(example__round__in=parts, example__retracted_at__isnull=True)
        .order_by()
        .values_list("example__round", "validator_id", "label", "verdict")
        .annotate(times=Count("pk"))
    )
    for round, who, label, verdict, times in rows:
        parts[round].votes_by[who, (label, verdict)] += times


def _count_patterns(parts: Mapping[int, Part], choices: Sequence[Choice]) -> None:
    """How many examples have which numbers of votes; the database counts unless it is free text."""
    if not choices:
        return
    if len(choices) > MOST_CHOICES:
        _count_free_patterns(parts)
        return
    vote, example = Validation._meta.db_table, Example._meta.db_table
    columns = ", ".join(f"c{n}" for n in range(len(choices)))
    sums = ", ".join(
        f"SUM(CASE WHEN v.label = %s AND v.verdict = %s THEN 1 ELSE 0 END) AS c{n}"
        for n in range(len(choices))
    )
    marks = ", ".join(["%s"] * len(parts))
    with connection.cursor() as cursor:
        cursor.execute(
            # Only names of tables and columns are put in; values are parameters.
            f"SELECT round_id, {columns}, COUNT(*) FROM ("  # noqa: S608
            f"SELECT e.round_id, {sums} FROM {vote} v JOIN {example} e ON e.id = v.example_id "
            f"WHERE e.round_id IN ({marks}) AND e.retracted_at IS NULL "
            f"GROUP BY v.example_id, e.round_id) t GROUP BY round_id, {columns}",
            [*(text for choice in choices for text in choice), *parts],
        )
        for round, *pattern, times in cursor.fetchall():
            parts[round].patterns[tuple(map(int, pattern))] += times


def _count_free_patterns(parts: Mapping[int, Part]) -> None:
    """The same without saying which answers they are: the numbers of equal answers."""
    rows = (
        Validation.objects.filter(example__round__in=parts, example__retracted_at__isnull=True)
        .order_by("example_id")
        .values_list("example_id", "example__round", "label", "verdict")
        .annotate(times=Count("pk"))
        .values_list("example_id", "example__round", "times")
        .iterator(chunk_size=2000)
    )
    for (_, round), group in groupby(rows, itemgetter(0, 1)):
        parts[round].patterns[tuple(sorted((times for *_, times in group), reverse=True))] += 1
