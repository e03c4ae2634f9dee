"""The report of a study: effects of planned comparisons, and of all others as exploratory. Pure.

It is computed from the plan and one record per person, so that a stranger with both computes the
same numbers (`replay`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynabench.studies.rules.effects import Layout, correct_for_several, estimate_effects
from dynabench.studies.rules.model_alone import count_alone_share
from dynabench.studies.rules.plan import ALPHA, Outcome, StudyPlan
from dynabench.studies.rules.records import (
    AloneRecord,
    MeasuredValue,
    PersonRecord,
    find_exclusion,
)


def build_report(
    plan: StudyPlan, records: Sequence[PersonRecord], alone_records: Sequence[AloneRecord] = ()
) -> dict[str, Any]:
    """Compute all numbers of a study.

    alone_records: what the arms' models answered without people.

    Planned comparisons have a corrected p. All other pairs of arms and outcomes are exploratory:
    their p is not corrected, and proves nothing.
    """
    # By the frozen rules only: nobody is left out because of what was found.
    included = select_included(plan, records)
    planned = []
    planned_keys = set()
    for hypothesis in plan.hypotheses:
        pair = (hypothesis.arm, hypothesis.compared_with)
        planned_keys.add((frozenset(pair), hypothesis.outcome))
        comparison = _compare_arms(plan, included, plan.get_outcome(hypothesis.outcome), pair)
        planned.append(comparison | {"expected": hypothesis.expected})
    _correct(planned)
    exploratory = []
    for outcome in plan.outcomes:
        for compared_with, arm in combinations(plan.arm_names, 2):
            if (frozenset((arm, compared_with)), outcome.name) not in planned_keys:
                exploratory.append(_compare_arms(plan, included, outcome, (arm, compared_with)))
    arms = {}
    for name in plan.arm_names:
        own_results = [alone.is_right for alone in alone_records if alone.arm == name]
        share = count_alone_share(own_results)
        arms[name] = _count_arm(plan, records, name)
        arms[name]["model_alone"] = share._asdict() if share else None
    return {
        "arms": arms,
        "planned": planned,
        "exploratory": exploratory,
    }


def select_included(plan: StudyPlan, records: Sequence[PersonRecord]) -> list[PersonRecord]:
    """Return the records that the plan keeps.

    Within people, who is left out in one arm is left out in all: they are compared with themselves.
    """
    excluded = {record.person for record in records if find_exclusion(plan, record)}
    return [record for record in records if record.person not in excluded]


def _correct(comparisons: list[dict[str, Any]]) -> None:
    """Add the corrected p to the planned comparisons, and whether each found what it expected."""
    p_values = [
        np.nan if comparison["p"] is None else comparison["p"] for comparison in comparisons
    ]
    corrected = correct_for_several(np.array([p_values]))[0]
    for comparison, corrected_p in zip(comparisons, corrected, strict=True):
        is_known = comparison["p"] is not None
        comparison["corrected_p"] = float(corrected_p) if is_known else None
        sign = 1 if comparison["expected"] == "higher" else -1
        is_as_expected = is_known and comparison["difference"] * sign > 0
        comparison["is_found"] = bool(is_as_expected and corrected_p < ALPHA)


def _count_arm(plan: StudyPlan, records: Sequence[PersonRecord], arm: str) -> dict[str, Any]:
    """Return how many people of an arm were drawn, began, submitted and are left out, and means."""
    own_records = [record for record in records if record.arm == arm]
    excluded_by: Counter[str] = Counter()
    for record in own_records:
        if exclusion := find_exclusion(plan, record):
            excluded_by[f"{exclusion.measure} below {exclusion.below:g}"] += 1
    included = [record for record in select_included(plan, records) if record.arm == arm]
    means = {}
    for outcome in plan.outcomes:
        values = [value.value for value in _select_values(included, outcome)]
        means[outcome.name] = _scale_mean(outcome, values)
    return {
        "drawn": len(own_records),
        "began": sum(record.has_begun for record in own_records),
        "submitted": sum(record.has_submitted for record in own_records),
        "excluded": dict(excluded_by),
        "means": means,
    }


def _scale_mean(outcome: Outcome, values: Sequence[float]) -> float | None:
    """Return the mean of values; of times, which are logarithms, the geometric mean in seconds."""
    if not values:
        return None
    mean = float(np.mean(values))
    return exp(mean) if outcome.kind.scale == "time" else mean


def _select_values(records: Sequence[PersonRecord], outcome: Outcome) -> Iterator[MeasuredValue]:
    """Yield the values of an outcome."""
    for record in records:
        for value in record.values:
            if value.outcome == outcome.name:
                yield value


def _compare_arms(
    plan: StudyPlan, records: Sequence[PersonRecord], outcome: Outcome, pair: tuple[str, str]
) -> dict[str, Any]:
    """Return the difference of two arms in an outcome. Its numbers are null without an interval.

    The difference of times is a ratio in `ratio`, and else a difference of logarithms.
    """
    arm, compared_with = pair
    own_records = [record for record in records if record.arm in pair]
    numbers: dict[str, Any] = {"arm": arm, "compared_with": compared_with, "outcome": outcome.name}
    layout, values, is_treated = _build_arrays(plan, own_records, outcome, arm)
    numbers["values"] = len(values)
    numbers["people"] = len(np.unique(layout.people))
    empty = {"difference": None, "low": None, "high": None, "p": None}
    if not len(values):
        return numbers | empty
    effects = estimate_effects(
        values[None], is_treated[None], np.ones((1, len(values)), dtype=bool), layout
    )
    difference, half_width = float(effects.difference[0]), float(effects.half_width[0])
    # One person in an arm, or values that do not differ, give no interval.
    if np.isnan(half_width):
        return numbers | empty
    numbers |= {
        "difference": difference,
        "low": difference - half_width,
        "high": difference + half_width,
        "p": float(effects.p[0]),
    }
    if outcome.kind.scale == "time":
        numbers["ratio"] = exp(difference)
    return numbers


def _build_arrays(
    plan: StudyPlan, records: Sequence[PersonRecord], outcome: Outcome, arm: str
) -> tuple[Layout, NDArray[np.float64], NDArray[np.bool_]]:
    """Return who gave each value on what, the values, and which of them belong to the arm."""
    people, contexts, strata, values, is_treated = [], [], [], [], []
    for record in records:
        for value in _select_values([record], outcome):
            people.append(record.person)
            contexts.append(value.context)
            # Blocks compare like with like: here by an equal text for what is alike.
            skill = record.stratum if "skill" in plan.blocks else ""
            context = value.context if "context" in plan.blocks else ""
            # Within people, everybody is compared with themselves.
            person = record.person if plan.design == "within" else ""
            strata.append(f"{skill} {context} {person}")
            values.append(value.value)
            is_treated.append(record.arm == arm)
    layout = Layout(
        _encode(people), None if outcome.kind.is_per_person else _encode(contexts), _encode(strata)
    )
    return layout, np.array(values, dtype=float), np.array(is_treated, dtype=bool)


def _encode(names: Sequence[Any]) -> NDArray[np.intp]:
    """Return a code from 0 for each name; equal names have one code."""
    return np.unique(np.array(names), return_inverse=True)[1]


def format_latex(report: dict[str, Any]) -> str:
    """Return the comparisons as a table of LaTeX (booktabs), planned ones first."""
    lines = [
        r"\begin{tabular}{llrrrl}",
        r"\toprule",
        r"Comparison & Outcome & Difference & 95\,\% interval & $p$ & \\",
        r"\midrule",
    ]
    for key in ("planned", "exploratory"):
        for comparison in report[key]:
            lines.append(_format_latex_row(comparison, key))
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


def _format_latex_row(comparison: dict[str, Any], kind: str) -> str:
    """Return a line of the table: of a planned comparison with its corrected p."""
    names = f"{comparison['arm']} $-$ {comparison['compared_with']} & {comparison['outcome']}"
    # An underscore would begin an index in LaTeX.
    names = names.replace("_", r"\_")
    if comparison["p"] is None:
        return rf"{names} & -- & -- & -- & {kind} \\"
    p = comparison.get("corrected_p", comparison["p"])
    interval = f"[{comparison['low']:.3f}, {comparison['high']:.3f}]"
    return rf"{names} & {comparison['difference']:.3f} & {interval} & {p:.4f} & {kind} \\"
