"""The numbers of a task's rounds, from a few aggregate queries and the pure functions.

docs/statistics.md defines each of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.replay import replay_policy
from validation.rates.agreement import MAX_CHOICES, compute_fleiss_kappa, compute_krippendorff_alpha
from validation.rates.criteria_counts import measure_criteria
from validation.rates.rates import (
    Rate,
    Undefined,
    compare_human_and_model,
    compute_round_rates,
    compute_share_by_author,
)
from validation.rates.round_counts import Cell, Choice, Part, sum_collected
from validation.rates.sampled_counts import (
    AGREEMENT_NAMES,
    ONLY_SAMPLE_REASON,
    RATIOS,
    count_drawn,
    estimate_rates,
)
from validation.rates.step_counts import measure_steps
from validation.statistics.counts import RoundCounts, count_rounds

NO_VOTES_REASON = gettext_noop("no example has a vote")
NO_AUTHOR_REASON = gettext_noop("no example's author is known")
FREE_TEXT_REASON = (
    f"more than {MAX_CHOICES} different answers were given: agreement is about labels"
)
ALL_ROUNDS = 0
"""The round id that stands for all rounds together."""
COMPARED_RATES = ("human_accuracy", "model_accuracy", "human_model_gap")
CRITERIA_RATES = (
    "criteria_met_share",
    "criteria_score",
    "criteria_unclear_share",
    "criteria_author_share",
)
RATE_NAMES = (
    "mer",
    "vmer",
    "fooled_of_decided",
    "majority_share",
    "unanimous_share",
    "step_unanimous_share",
    *CRITERIA_RATES,
    *COMPARED_RATES,
)

Number = int | float | Rate | Undefined | Mapping[str, int] | None


def build_task_report(
    rounds: Sequence[Round], *, code: str, policy: Policy | None = None
) -> dict[str, Any]:
    """Return the statistics of each round and of all together as JSON values.

    With a policy, it decides all examples in memory. Without one, the stored consensus counts.
    """
    counted_rounds = count_rounds(rounds, with_consensus=policy is None)
    for round in rounds if policy else ():
        assert policy
        group = counted_rounds.get_or_create_part(round.pk, "")
        for example in replay_policy(round, policy):
            if example.by_program:
                group.program_examples += 1
            else:
                example.add_to(group, example.status)
    numbers_by_round = {
        pk: compute_numbers(group, counted_rounds.choices)
        for (pk, _), group in counted_rounds.parts.items()
    }
    # With one round, its numbers are also the totals, so they are not computed twice.
    only_numbers = next(iter(numbers_by_round.values())) if len(numbers_by_round) == 1 else None
    overall_numbers = only_numbers or compute_numbers(
        _merge_parts(counted_rounds.parts.values()), counted_rounds.choices
    )
    notes = {"round": "all rounds together", **overall_numbers["notes"]}
    return {
        "task": code,
        "rounds": [{"round": round.number, **numbers_by_round[round.pk]} for round in rounds],
        "all": {"round": None, **overall_numbers, "notes": notes},
    }


def build_grouped_report(rounds: Sequence[Round], *, code: str, grouping: str) -> dict[str, Any]:
    """Return the statistics of each part of each round, and of all rounds together.

    grouping: one of `counts.GROUPINGS`. Raises ValueError for labels if authors choose none.
    """
    counted_rounds = count_rounds(rounds, grouping)
    merged_rounds = RoundCounts({}, counted_rounds.choices)
    for (_, value), group in counted_rounds.parts.items():
        merged_part = merged_rounds.get_or_create_part(ALL_ROUNDS, value)
        merged_part += group

    def list_groups(counted_rounds: RoundCounts, round: int) -> list[dict[str, Any]]:
        return [
            {grouping: value, **compute_numbers(part, counted_rounds.choices)}
            for value, part in counted_rounds.get_parts_of(round).items()
        ]

    return {
        "task": code,
        "by": grouping,
        "rounds": [
            {"round": round.number, "parts": list_groups(counted_rounds, round.pk)}
            for round in rounds
        ],
        "all": {"round": None, "parts": list_groups(merged_rounds, ALL_ROUNDS)},
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
    plain_numbers: dict[str, Number] = {
        **_count_labels(group.cells),
        **_compute_agreement(group, choices),
        **_count_people(group),
        **_compare_choices(group, choices),
    }
    return {
        **compute_headline_numbers(group),
        **_correct_for_sample(group, plain_numbers),
        "program_examples": group.program_examples,
        "program_votes": group.program_votes,
        **(measure_steps(group.steps) if group.steps else {}),
        **(measure_criteria(group.criteria) if group.criteria else {}),
        **_count_sample(group),
    }


def compute_headline_numbers(group: Part) -> dict[str, Number]:
    """Return the numbers that are computed only from consensus rows, without votes."""
    authors = group.list_author_counts()
    total = sum_collected(authors)
    round_rates = compute_round_rates(authors, group.list_author_weights())
    round_rates = _correct_for_sample(group, round_rates)
    mer, vmer = round_rates["mer"], round_rates["vmer"]
    return {
        "collected": total.collected,
        # Without known outcomes, their count is as undefined as the rate.
        "fooled": mer if isinstance(mer, Undefined) else total.fooled,
        "judged": total.judged,
        "decided": total.decided,
        "verified": total.verified,
        "verified_fooled": total.verified_fooled if total.with_model and total.judged else vmer,
        "mer": mer,
        "vmer": vmer,
        "fooled_of_decided": round_rates["fooled_of_decided"],
    }


def _correct_for_sample(group: Part, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers with those rates estimated of which people judged only a sample.

    Undefined ones stay so, with their reasons.
    """
    corrected_numbers = dict(numbers)
    if group.sample is None or not group.sample.is_sampled:
        return corrected_numbers
    # An undefined rate has a reason that a sample doesn't remove, such as no votes at all.
    names = [name for name in RATIOS if isinstance(numbers.get(name), Rate)]
    corrected_numbers |= estimate_rates(group.sample, names)
    # No estimator weights these, and on a sample they would look like those of the whole.
    corrected_numbers |= {
        name: Undefined(ONLY_SAMPLE_REASON) for name in AGREEMENT_NAMES if name in numbers
    }
    return corrected_numbers


def _count_sample(group: Part) -> dict[str, Number]:
    """Count what the draw asks people about, and what it left out, if people judge a sample."""
    if group.sample is None or not group.sample.is_sampled:
        return {}
    drawn_count, left_out_count = count_drawn(group.sample)
    return {"sample_drawn": drawn_count, "sample_left_out": left_out_count}


def compute_numbers(group: Part, choices: Sequence[Choice]) -> dict[str, Any]:
    """Return every number of a part as JSON values."""
    return convert_to_json(measure_part(group, choices))


def convert_to_json(measured_numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Return measured numbers as JSON values, in their order.

    Undefined ones are None, with the reason under `notes`.
    """
    notes = {
        name: number.reason
        for name, number in measured_numbers.items()
        if isinstance(number, Undefined)
    }
    numbers_in_json = {
        name: _convert_number_to_json(number) for name, number in measured_numbers.items()
    }
    last_numbers = {
        name: numbers_in_json.pop(name)
        for name in (*COMPARED_RATES, "program_examples", "program_votes")
    }
    return {**numbers_in_json, "notes": notes, **last_numbers}


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
        if name in RATE_NAMES:
            rate_parts = value or dict.fromkeys(("value", "low", "high", "n", "method"))
            columns[name] = rate_parts["value"]
            columns |= {
                f"{name}_{part_name}": rate_parts[part_name]
                for part_name in ("low", "high", "n", "method")
            }
    return columns


def _compare_choices(group: Part, choices: Sequence[Choice]) -> Mapping[str, Rate | Undefined]:
    if len(choices) > MAX_CHOICES:
        return dict.fromkeys(COMPARED_RATES, Undefined(FREE_TEXT_REASON))
    return compare_human_and_model(group.iterate_compared_authors())


def _count_labels(cells: Mapping[Cell, int]) -> dict[str, Number]:
    """Count the consensus labels (or verdicts) of decided examples, and compute `majority_share`.

    `none` counts the examples that were judged but not decided.
    """
    labels: Counter[str] = Counter()
    consensus: Counter[tuple[int | None, bool]] = Counter()
    for cell, case_count in cells.items():
        if cell.decided:
            labels[cell.winner] += case_count
        elif cell.judged:
            labels["none"] += case_count
        if cell.judged:
            consensus[cell.author, cell.decided] += case_count
    counts_by_name = {name: labels[name] for name in sorted(labels) if name != "none"}
    return {
        "consensus_labels": {**counts_by_name, "none": labels["none"]},
        "majority_share": compute_share_by_author(consensus.items(), NO_VOTES_REASON),
    }


def _compute_agreement(group: Part, choices: Sequence[Choice]) -> dict[str, Number]:
    """Measure agreement over labels, or over verdicts if nobody gave a label."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    unanimous = compute_share_by_author(group.unanimous.items(), NO_VOTES_REASON)
    if len(choices) > MAX_CHOICES:
        beyond_chance = dict.fromkeys(
            ("fleiss_kappa", "krippendorff_alpha"), Undefined(FREE_TEXT_REASON)
        )
        return {"unanimous_share": unanimous, **beyond_chance}
    table = np.array([*group.patterns], dtype=float).reshape(len(group.patterns), len(choices))
    weights = np.array(list(group.patterns.values()))
    labels = [votes for votes, (label, _) in enumerate(choices) if label]
    verdicts = [
        votes for votes, (_, verdict) in enumerate(choices) if verdict not in ("", "cannot_tell")
    ]
    counted_table = table[:, labels if table[:, labels].any() else verdicts]
    return {
        "unanimous_share": unanimous,
        "fleiss_kappa": compute_fleiss_kappa(counted_table, weights),
        "krippendorff_alpha": compute_krippendorff_alpha(counted_table, weights),
    }


def _count_people(group: Part) -> dict[str, Number]:
    """Count authors and validators. Every anonymous vote counts as a separate validator.

    Anonymous authors are not counted.
    """
    validators = {validator for validator, _ in group.votes_by}
    unknown = sum(
        case_count for (validator, _), case_count in group.votes_by.items() if validator is None
    )
    authors = {cell.author for cell in group.cells} - {None}
    has_unknown_author = group.cells and not authors
    return {
        "validators": len(validators - {None}) + unknown,
        "authors": Undefined(NO_AUTHOR_REASON) if has_unknown_author else len(authors),
        "votes": group.votes_by.total(),
    }


def _convert_number_to_json(value: Number) -> Any:
    if isinstance(value, Undefined):
        return None
    if isinstance(value, Rate):
        names = ("value", "low", "high", "n", "method")
        return {name: getattr(value, name) for name in names}
    return value
