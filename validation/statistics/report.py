"""The numbers of a task's rounds, from a few aggregate queries and the pure functions.

docs/statistics.md defines each of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.replay import replay
from validation.rates.agreement import MOST_CHOICES, fleiss_kappa, krippendorff_alpha
from validation.rates.rates import (
    Rate,
    Undefined,
    human_and_model,
    round_rates,
    share_by_author,
)
from validation.rates.round_counts import Cell, Choice, Part, sum_of
from validation.statistics.counts import Counted, count

NO_VOTES = gettext_noop("no example has a vote")
NO_AUTHOR = gettext_noop("no example's author is known")
FREE_TEXT = f"more than {MOST_CHOICES} different answers were given: agreement is about labels"
ALL = 0
"""Stands for a round's id where the parts of all rounds are added up."""
COMPARED = ("human_accuracy", "model_accuracy", "human_model_gap")
RATES = ("mer", "vmer", "fooled_of_decided", "majority_share", "unanimous_share", *COMPARED)

Number = int | float | Rate | Undefined | Mapping[str, int] | None


def task_report(
    rounds: Sequence[Round], *, code: str, policy: Policy | None = None
) -> dict[str, Any]:
    """Return the statistics of each round and of all together as JSON values.

    With a policy all examples are decided by it in memory; without one the stored consensus counts.
    """
    counted_rounds = count(rounds, stored=policy is None)
    for round in rounds if policy else ():
        assert policy
        group = counted_rounds.part(round.pk, "")
        for example in replay(round, policy):
            if example.by_program:
                group.program_examples += 1
            else:
                group.cells[example.cell(example.status)] += 1
    numbers_by_round = {
        pk: numbers(group, counted_rounds.choices)
        for (pk, _), group in counted_rounds.parts.items()
    }
    # The numbers of one round are those of all together, so they are not computed twice.
    only_numbers = next(iter(numbers_by_round.values())) if len(numbers_by_round) == 1 else None
    overall_numbers = only_numbers or numbers(
        _merge_parts(counted_rounds.parts.values()), counted_rounds.choices
    )
    notes = {"round": "all rounds together", **overall_numbers["notes"]}
    return {
        "task": code,
        "rounds": [{"round": round.number, **numbers_by_round[round.pk]} for round in rounds],
        "all": {"round": None, **overall_numbers, "notes": notes},
    }


def report_by(rounds: Sequence[Round], *, code: str, by: str) -> dict[str, Any]:
    """Return the same statistics for each part of each round. by: one of `counts.BY`.

    Raises ValueError for labels if authors choose none.
    """
    counted_rounds = count(rounds, by)
    merged_rounds = Counted({}, counted_rounds.choices)
    for (_, value), group in counted_rounds.parts.items():
        merged_part = merged_rounds.part(ALL, value)
        merged_part += group

    def parts(of: Counted, round: int) -> list[dict[str, Any]]:
        return [{by: value, **numbers(p, of.choices)} for value, p in of.of(round).items()]

    return {
        "task": code,
        "by": by,
        "rounds": [{"round": r.number, "parts": parts(counted_rounds, r.pk)} for r in rounds],
        "all": {"round": None, "parts": parts(merged_rounds, ALL)},
    }


def _merge_parts(parts: Iterable[Part]) -> Part:
    merged_part = Part()
    for group in parts:
        merged_part += group
    return merged_part


def measure_part(group: Part, choices: Sequence[Choice]) -> dict[str, Number]:
    """Return every number of a part by its name.

    A rate has its interval, or the reason why it is undefined.
    """
    return {
        **headline_numbers(group),
        **_count_labels(group.cells),
        **_agreement(group, choices),
        **_people(group),
        **_compare_choices(group, choices),
        "program_examples": group.program_examples,
        "program_votes": group.program_votes,
    }


def headline_numbers(group: Part) -> dict[str, Number]:
    """Return the numbers that are computed only from consensus rows, without votes."""
    authors = group.authors()
    total, rates = sum_of(authors), round_rates(authors)
    mer, vmer = rates["mer"], rates["vmer"]
    return {
        "collected": total.collected,
        # A count of outcomes that nobody knows is as unknown as its rate.
        "fooled": mer if isinstance(mer, Undefined) else total.fooled,
        "judged": total.judged,
        "decided": total.decided,
        "verified": total.verified,
        "verified_fooled": total.verified_fooled if total.with_model and total.judged else vmer,
        "mer": mer,
        "vmer": vmer,
        "fooled_of_decided": rates["fooled_of_decided"],
    }


def numbers(group: Part, choices: Sequence[Choice]) -> dict[str, Any]:
    """Return every number of a part as JSON values."""
    return as_json(measure_part(group, choices))


def as_json(measured_numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Return measured numbers as JSON values, in their order.

    Undefined ones are None, with the reason under `notes`.
    """
    notes = {
        name: number.reason
        for name, number in measured_numbers.items()
        if isinstance(number, Undefined)
    }
    numbers_in_json = {name: _number_as_json(number) for name, number in measured_numbers.items()}
    last = {
        name: numbers_in_json.pop(name) for name in (*COMPARED, "program_examples", "program_votes")
    }
    return {**numbers_in_json, "notes": notes, **last}


def flatten_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row of JSON numbers for a table: columns for a rate's value, interval and n.

    Undefined values are empty. Labels and reasons are left out, because their columns differ
    between rounds.
    """
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("consensus_labels", "notes"):
            continue
        columns[name] = value
        if name in RATES:
            parts_of_rate = value or dict.fromkeys(("value", "low", "high", "n", "method"))
            columns[name] = parts_of_rate["value"]
            columns |= {
                f"{name}_{name_of_part}": parts_of_rate[name_of_part]
                for name_of_part in ("low", "high", "n", "method")
            }
    return columns


def _compare_choices(group: Part, choices: Sequence[Choice]) -> Mapping[str, Rate | Undefined]:
    if len(choices) > MOST_CHOICES:
        return dict.fromkeys(COMPARED, Undefined(FREE_TEXT))
    return human_and_model(group.authors_compared())


def _count_labels(cells: Mapping[Cell, int]) -> dict[str, Number]:
    """Count consensus labels (or verdicts), and `none`, of examples that are judged or decided."""
    labels: Counter[str] = Counter()
    consensus: Counter[tuple[int | None, bool]] = Counter()
    for cell, times in cells.items():
        if cell.decided:
            labels[cell.winner] += times
        elif cell.judged:
            labels["none"] += times
        if cell.judged:
            consensus[cell.author, cell.decided] += times
    named = {name: labels[name] for name in sorted(labels) if name != "none"}
    return {
        "consensus_labels": {**named, "none": labels["none"]},
        "majority_share": share_by_author(consensus.items(), NO_VOTES),
    }


def _agreement(group: Part, choices: Sequence[Choice]) -> dict[str, Number]:
    """Measure agreement over labels, or over verdicts if nobody gave a label."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    unanimous = share_by_author(group.unanimous.items(), NO_VOTES)
    if len(choices) > MOST_CHOICES:
        beyond_chance = dict.fromkeys(("fleiss_kappa", "krippendorff_alpha"), Undefined(FREE_TEXT))
        return {"unanimous_share": unanimous, **beyond_chance}
    table = np.array([*group.patterns], dtype=float).reshape(len(group.patterns), len(choices))
    weights = np.array(list(group.patterns.values()))
    labels = [n for n, (label, _) in enumerate(choices) if label]
    verdicts = [n for n, (_, verdict) in enumerate(choices) if verdict not in ("", "cannot_tell")]
    counted_table = table[:, labels if table[:, labels].any() else verdicts]
    return {
        "unanimous_share": unanimous,
        "fleiss_kappa": fleiss_kappa(counted_table, weights),
        "krippendorff_alpha": krippendorff_alpha(counted_table, weights),
    }


def _people(group: Part) -> dict[str, Number]:
    """Count authors and validators. Every anonymous vote counts as a separate validator.

    Anonymous authors are not counted.
    """
    validators = {who for who, _ in group.votes_by}
    unknown = sum(times for (who, _), times in group.votes_by.items() if who is None)
    authors = {cell.author for cell in group.cells} - {None}
    nobody = group.cells and not authors
    return {
        "validators": len(validators - {None}) + unknown,
        "authors": Undefined(NO_AUTHOR) if nobody else len(authors),
        "votes": group.votes_by.total(),
    }


def _number_as_json(value: Number) -> Any:
    if isinstance(value, Undefined):
        return None
    if isinstance(value, Rate):
        names = ("value", "low", "high", "n", "method")
        return {name: getattr(value, name) for name in names}
    return value
