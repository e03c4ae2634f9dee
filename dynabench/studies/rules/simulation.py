"""Whole studies of a plan, played in memory with its own draws and its own analysis. Pure.

A simulated value is the outcome's mean plus a part that its person's values share, a part that the
values on its context share, and chance, in the plan's shares of the variance. Shares (0 or 1) are
cut from such a value, so that their mean is exactly the plan's. Outcomes of one person do not
depend on each other, which is the hardest case for the correction.
"""

from collections.abc import Iterator, Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from annotation.rules.draws import fill_urn
from dynabench.studies.rules.effects import (
    Effects,
    Layout,
    correct_for_several,
    estimate_effects,
)
from dynabench.studies.rules.plan import ALPHA, Outcome, StudyPlan, compute_shifts

SKILL_SHARE = 0.36
"""The part of what a person's values share that the two levels of skill explain."""
MAX_VALUES = 2_000_000
"""The values that are computed at a time, so that memory stays below about 300 MB."""

Values = NDArray[np.float64]


class StudySimulation(NamedTuple):
    """What a plan's analysis finds in simulated studies. Shares are from 0 to 1.

    false_alarms: of the studies without any effect, those with a corrected p below 0.05. power: of
    the planned comparisons in studies with the effect, those with a corrected p below 0.05 and the
    expected direction. coverage95: of their 95% intervals, those that hold the true effect.
    """

    studies: int
    false_alarms: float
    power: float
    coverage95: float


class _StudyBatch(NamedTuple):
    """Some studies with one layout: each person's arm by period, and who is left out.

    arms: shape (studies, people, periods). is_excluded: shape (studies, people). contexts: shape
    (people, periods, each). skill: of each person, 0 or 1.
    """

    arms: NDArray[np.intp]
    is_excluded: NDArray[np.bool_]
    contexts: NDArray[np.intp]
    skill: NDArray[np.intp]


class _OutcomeValues(NamedTuple):
    """The values of one outcome in a batch: shapes (studies, values).

    without_effect: the values that the same people would have given without any effect.
    """

    with_effect: Values
    without_effect: Values
    arms: NDArray[np.intp]
    is_excluded: NDArray[np.bool_]
    layout: Layout


def simulate_studies(plan: StudyPlan, studies: int, effect: float, seed: int) -> StudySimulation:
    """Simulate studies of the plan and analyse each as the plan says.

    effect: in standard deviations of each outcome, as in the plan's size. Deterministic for a seed.
    """
    # Only this generator is drawn from, so that the seed decides everything.
    rng = np.random.default_rng(seed)
    alarms: list[NDArray[np.bool_]] = []
    findings: list[NDArray[np.bool_]] = []
    covered: list[NDArray[np.bool_]] = []
    for batch in _draw_batches(plan, studies, rng):
        values_by_outcome = {
            outcome.name: _draw_values(plan, outcome, batch, effect, rng)
            for outcome in plan.outcomes
        }
        p_without_effect, p_with_effect, is_expected = [], [], []
        for hypothesis in plan.hypotheses:
            outcome_values = values_by_outcome[hypothesis.outcome]
            # The same people and arms without and with the effect: both differ in nothing else.
            pair = plan.find_arm_indices(hypothesis)
            p_without_effect.append(_compare(outcome_values, pair, has_effect=False).p)
            effects = _compare(outcome_values, pair, has_effect=True)
            p_with_effect.append(effects.p)
            is_expected.append(effects.difference * hypothesis.sign > 0)
            true_difference = effect * plan.compute_unit_difference(hypothesis)
            covered.append(abs(effects.difference - true_difference) <= effects.half_width)
        corrected = correct_for_several(np.stack(p_without_effect, axis=1))
        alarms.append(np.logical_or.reduce(corrected < ALPHA, axis=1))
        corrected = correct_for_several(np.stack(p_with_effect, axis=1))
        # A difference against the expected direction is no success of the plan.
        is_found: NDArray[np.bool_] = (corrected < ALPHA) & np.stack(is_expected, axis=1)
        findings.append(is_found.ravel())
    return StudySimulation(
        studies=studies,
        false_alarms=float(np.concatenate(alarms).mean()),
        power=float(np.concatenate(findings).mean()),
        coverage95=float(np.concatenate(covered).mean()),
    )


def draw_many_arms(
    ratios: Sequence[int], strata: NDArray[np.intp], studies: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the arms of all people of many studies, as `draw_arm` does one after another.

    strata: the stratum of each person, shape (people,). Returns indices of arms, shape (studies,
    people).
    """
    urn = np.array(fill_urn(ratios))
    arms = np.empty((studies, len(strata)), dtype=np.intp)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        urn_count = -(-len(members) // len(urn))
        full_urns = np.broadcast_to(urn, (studies, urn_count, len(urn)))
        # An order at random of a full urn is what draws without replacement give.
        drawn_arms = rng.permuted(full_urns, axis=2).reshape(studies, -1)
        arms[:, members] = drawn_arms[:, : len(members)]
    return arms


def _draw_batches(plan: StudyPlan, studies: int, rng: np.random.Generator) -> Iterator[_StudyBatch]:
    """Yield the studies in batches, each with new people, contexts and draws."""
    size = plan.size
    periods = len(plan.arms) if plan.design == "within" else 1
    value_count = size.people * periods * size.each
    batch_size = max(1, MAX_VALUES // value_count)
    # Each rule leaves out its share of those whom the others keep.
    excluded_share = 1.0
    for exclusion in plan.exclude:
        excluded_share *= 1 - exclusion.expected_share
    excluded_share = 1 - excluded_share
    for first in range(0, studies, batch_size):
        count = min(batch_size, studies - first)
        # As many people of each level, in random order.
        skill = rng.permutation(np.arange(size.people) % 2)
        yield _StudyBatch(
            arms=_draw_arms(plan, skill, count, rng),
            is_excluded=rng.random((count, size.people)) < excluded_share,
            contexts=_hand_out_contexts(plan, periods, rng),
            skill=skill,
        )


def _draw_arms(
    plan: StudyPlan, skill: NDArray[np.intp], studies: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw everybody's arm by period: shape (studies, people, periods)."""
    people = plan.size.people
    ratios = [arm.ratio for arm in plan.arms]
    if plan.design == "within":
        # Each person empties an urn of their own.
        periods = np.zeros(len(ratios), dtype=np.intp)
        arms = draw_many_arms(ratios, periods, studies * people, rng)
        return arms.reshape(studies, people, len(ratios))
    strata = skill if "skill" in plan.blocks else np.zeros(people, dtype=np.intp)
    return draw_many_arms(ratios, strata, studies, rng)[:, :, None]


def _hand_out_contexts(plan: StudyPlan, periods: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Give each value a context, the least used first: shape (people, periods, each)."""
    size = plan.size
    value_count = size.people * periods * size.each
    # Each context once before any of them again, as a site hands out the least used first.
    cycles = [rng.permutation(size.contexts) for _ in range(-(-value_count // size.contexts))]
    return np.concatenate(cycles)[:value_count].reshape(size.people, periods, size.each)


def _draw_values(
    plan: StudyPlan, outcome: Outcome, batch: _StudyBatch, effect: float, rng: np.random.Generator
) -> _OutcomeValues:
    """Draw the values of an outcome in a batch of studies, with and without the effect."""
    studies, people, periods = batch.arms.shape
    # An outcome of a person has one value for each of their arms, and no context.
    repeats = 1 if outcome.kind.is_per_person else plan.size.each
    person_codes = np.repeat(np.arange(people), periods * repeats)
    contexts = None if outcome.kind.is_per_person else batch.contexts.ravel()
    scores = _draw_scores(outcome, batch, person_codes, contexts, rng)
    arms = np.repeat(batch.arms.reshape(studies, -1), repeats, axis=1)
    shifts = compute_shifts(plan.hypotheses, outcome.name)
    shift_by_arm = np.array([shifts.get(name, 0) for name in plan.arm_names])
    shift = effect * outcome.deviation * shift_by_arm[arms]
    if outcome.kind.scale == "share":
        mean = outcome.assume.mean
        # A normal score is below the quantile of a share with this share as its probability.
        with_effect = (scores < ndtri(mean + shift)).astype(float)
        without_effect = (scores < ndtri(mean)).astype(float)
    else:
        is_time = outcome.kind.scale == "time"
        center = log(outcome.assume.mean) if is_time else outcome.assume.mean
        without_effect = center + outcome.assume.sd * scores
        with_effect = without_effect + shift
    return _OutcomeValues(
        with_effect=with_effect,
        without_effect=without_effect,
        arms=arms,
        is_excluded=batch.is_excluded[:, person_codes],
        layout=Layout(person_codes, contexts, _build_strata(plan, batch, person_codes, contexts)),
    )


def _draw_scores(
    outcome: Outcome,
    batch: _StudyBatch,
    person_codes: NDArray[np.intp],
    contexts: NDArray[np.intp] | None,
    rng: np.random.Generator,
) -> Values:
    """Draw normal scores, alike within a person and within a context: (studies, values)."""
    studies, people, _ = batch.arms.shape
    person_share, context_share = outcome.assume.same_person, outcome.assume.same_context
    # Half a normal distribution above its middle for the skilled, the other half for the others.
    skill_scores = np.abs(rng.standard_normal((studies, people))) * (2 * batch.skill - 1)
    own_scores = rng.standard_normal((studies, people))
    person_scores = sqrt(SKILL_SHARE) * skill_scores + sqrt(1 - SKILL_SHARE) * own_scores
    scores = sqrt(person_share) * person_scores[:, person_codes]
    if contexts is None:
        # What contexts would explain is chance here, so that the variance is still 1.
        context_share = 0.0
    else:
        context_scores = rng.standard_normal((studies, contexts.max() + 1))
        scores += sqrt(context_share) * context_scores[:, contexts]
    chance = rng.standard_normal(scores.shape)
    chance *= sqrt(1 - person_share - context_share)
    scores += chance
    return scores


def _build_strata(
    plan: StudyPlan,
    batch: _StudyBatch,
    person_codes: NDArray[np.intp],
    contexts: NDArray[np.intp] | None,
) -> NDArray[np.intp]:
    """Return what the plan compares like with like, as a code for each value."""
    if plan.design == "within":
        return person_codes
    strata = np.zeros(len(person_codes), dtype=np.intp)
    if "skill" in plan.blocks:
        strata = batch.skill[person_codes]
    if "context" in plan.blocks and contexts is not None:
        strata = strata * (contexts.max() + 1) + contexts
    # Codes without gaps, so that no stratum is empty.
    return np.unique(strata, return_inverse=True)[1]


def _compare(outcome_values: _OutcomeValues, pair: tuple[int, int], has_effect: bool) -> Effects:
    """Estimate the difference between two arms in each study of a batch."""
    arm, compared_with = pair
    is_treated = outcome_values.arms == arm
    is_included = is_treated | (outcome_values.arms == compared_with)
    return estimate_effects(
        outcome_values.with_effect if has_effect else outcome_values.without_effect,
        is_treated,
        is_included & ~outcome_values.is_excluded,
        outcome_values.layout,
    )
