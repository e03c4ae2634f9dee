"""Simulated worlds of models and rounds, to see how often intervals of linked scores hold.

Each world has three rounds, each harder than the one before. Whole models are left out: the ruler
chooses its anchors from the others, learns from them, and predicts those left out from their
answers to the anchors alone. No world has the form of the ruler's own predictor.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluation.scoring.ruler.linking import fit_ruler
from evaluation.scoring.ruler.matrices import ItemGroups

ROUND_COUNT, ROUND_ITEMS = 3, 500
KNOWN_COUNT, NEW_COUNT, FAMILY_SIZE = 60, 32, 4
ANCHOR_COUNT = 100
COVERAGE, COVERAGE_REACH = 0.95, 0.015
WELL_SPECIFIED = "one ability"
KINDS = (WELL_SPECIFIED, "families", "three abilities")


@dataclass(frozen=True)
class World:
    """Right answers (a row for each model) and the whole model that each row is a version of."""

    is_right: np.ndarray
    whole_models: np.ndarray


def simulate_world(kind: str, random: np.random.Generator) -> World:
    """Return a world of a kind of `KINDS`; all follow the two-parameter logistic model.

    families: four versions of each model have similar abilities, and habits in common.
    three abilities: each item needs its own mixture of them.
    """
    model_count, item_count = KNOWN_COUNT + NEW_COUNT, ROUND_COUNT * ROUND_ITEMS
    slopes = random.lognormal(0, 0.4, item_count)
    difficulties = random.normal(0, 1, item_count) + np.repeat([-0.3, 0.0, 0.6], ROUND_ITEMS)
    whole_models = np.arange(model_count)
    abilities = random.normal(0, 1, (model_count, 1))
    if kind == "families":
        whole_models = whole_models // FAMILY_SIZE
        shared = random.normal(0, 1, (model_count // FAMILY_SIZE, 1))
        # The variance of all abilities stays 1.
        abilities = 0.9 * shared[whole_models] + 0.19**0.5 * abilities
    logits = slopes * (abilities - difficulties)
    if kind == "families":
        habits = random.normal(0, 0.7, (model_count // FAMILY_SIZE, item_count))
        logits += habits[whole_models]
    if kind == "three abilities":
        several = random.normal(0, 1, (model_count, 3))
        mixtures = random.dirichlet([0.5] * 3, item_count)
        logits = slopes * (1.5 * several @ mixtures.T - difficulties)
    return World(random.random(logits.shape) < 1 / (1 + np.exp(-logits)), whole_models)


def measure_world(kind: str, seed: int) -> float:
    """Return the share of the new models' intervals that contain the truth, over all rounds."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    world = simulate_world(kind, random)
    version_count = FAMILY_SIZE if kind == "families" else 1
    drawn = random.permutation(np.unique(world.whole_models))[: NEW_COUNT // version_count]
    is_new = np.isin(world.whole_models, drawn)
    names = tuple(f"round {number}" for number in range(ROUND_COUNT))
    groups = ItemGroups(names, np.repeat(np.arange(ROUND_COUNT), ROUND_ITEMS))
    known_names = [f"{number:03d}" for number in world.whole_models[~is_new]]
    ruler = fit_ruler(world.is_right[~is_new], groups, known_names, ANCHOR_COUNT, seed)
    predicted = ruler.predict(world.is_right[np.ix_(is_new, ruler.anchors)])
    true_shares = groups.compute_shares(world.is_right[is_new])
    holds = (predicted.low <= true_shares) & (true_shares <= predicted.high)
    return float(holds.mean())


def measure_coverage(world_count: int) -> Mapping[str, dict[str, float]]:
    """Return by kind the share of intervals that hold, with its standard error (0: one world).

    Errors are over worlds because intervals of one world share a ruler.
    """
    found = {}
    for kind in KINDS:
        shares = np.array([measure_world(kind, seed) for seed in range(1, world_count + 1)])
        error = shares.std(ddof=1) / world_count**0.5 if world_count > 1 else 0.0
        found[kind] = {"coverage": float(shares.mean()), "error": float(error)}
    return found
