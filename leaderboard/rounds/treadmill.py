"""Simulate how far rounds lower a model's error, after Shirali, Abebe and Hardt (2023).

A population has texts of equal weight. A model is the set of texts on which it is wrong. A learner
is wrong on at most a share `error` of what it is trained on, however the texts are weighted. People
collect texts on which a model disagrees with their label. Their labels are wrong on a fixed share
`noise` of the texts. Several models answer by majority.

The path design has one round after another. The hierarchy has three nodes, each a path of three
rounds, and people collect against the majority of each node. `docs/statistics.md` derives the
bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Texts = NDArray[np.bool_]
"""For each text of the population, whether something holds."""
Weights = NDArray[np.float64]
"""The weights of the texts; their sum is 1."""
LearnerName = Literal["random", "stubborn"]
Learner = Callable[[Weights, float, np.random.Generator], Texts]
"""Returns on which texts a new model is wrong, from the weights and the error."""

POPULATION = 50_000
"""The number of texts."""
NODE_ROUNDS = 3
"""Rounds of a node of the hierarchy, and the number of its nodes."""


@dataclass(frozen=True)
class World:
    """What a simulation assumes.

    error: the largest share of a training set on which a learner is wrong. noise: the share of
    texts with a wrong label. learner: which errors it makes (`learn_at_random`,
    `learn_stubbornly`).
    """

    error: float
    noise: float = 0.0
    learner: LearnerName = "random"
    population: int = POPULATION


@dataclass(frozen=True)
class Treadmill:
    """The results of both designs in one world.

    path: the majority's error after each round. hierarchy: the majority's error after each node.
    path_bound, hierarchy_bound: what the error after three rounds, and after three nodes, can't
    exceed.
    """

    path: tuple[float, ...]
    hierarchy: tuple[float, ...]
    path_bound: float
    hierarchy_bound: float


def simulate_treadmill(world: World, rounds: int = 9, seed: int = 1) -> Treadmill:
    """Simulate both designs. rounds: the number of rounds of the path.

    Raises ValueError if the error or the noise is no share below one half, or rounds is below 1.
    """
    if not 0 < world.error < 0.5 or not 0 <= world.noise < 0.5:
        raise ValueError("The error has to be above 0, the noise at least 0, both below 0.5.")
    if rounds < 1:
        raise ValueError("At least one round is needed.")
    generator = np.random.default_rng(seed)
    is_mislabelled = generator.random(world.population) < world.noise
    everywhere = np.full(world.population, 1 / world.population)
    path = _run_path(world, rounds, [everywhere], is_mislabelled, generator)
    # The majority of the models so far, as they would answer together after each round.
    path_errors = [float(find_majority(path[: count + 1]).mean()) for count in range(rounds)]
    nodes: list[Texts] = []
    collected = [everywhere]
    hierarchy_errors = []
    for _node in range(NODE_ROUNDS):
        models = _run_path(world, NODE_ROUNDS, collected, is_mislabelled, generator)
        nodes.append(find_majority(models))
        hierarchy_errors.append(float(find_majority(nodes).mean()))
        # The node's majority is what people meet next, not its last model.
        collected = [*collected, collect_texts(nodes[-1], is_mislabelled)]
    return Treadmill(
        tuple(path_errors),
        tuple(hierarchy_errors),
        compute_path_bound(world.error, world.noise),
        compute_hierarchy_bound(world.error, world.noise),
    )


def simulate_catch_rates(world: World, rounds: int, seed: int) -> tuple[float, ...]:
    """Simulate a path, and return each round's share of texts that are catches.

    A catch is a text on which the round's model is wrong and the label is right, so that people
    confirm it. The round's model is the newest one.
    """
    generator = np.random.default_rng(seed)
    is_mislabelled = generator.random(world.population) < world.noise
    everywhere = np.full(world.population, 1 / world.population)
    models = _run_path(world, rounds, [everywhere], is_mislabelled, generator)
    return tuple(float((model & ~is_mislabelled).mean()) for model in models)


def _run_path(
    world: World,
    rounds: int,
    collected: Sequence[Weights],
    is_mislabelled: Texts,
    generator: np.random.Generator,
) -> list[Texts]:
    """Return the models of a path of rounds. collected: what the first one is trained on."""
    # A node of the hierarchy begins with what was collected against the nodes before it.
    learn = LEARNERS[world.learner]
    parts, models = list(collected), []
    for _round in range(rounds):
        # All that was collected counts equally, whatever its size.
        weights = np.mean(parts, axis=0)
        models.append(learn(weights, world.error, generator))
        parts.append(collect_texts(models[-1], is_mislabelled))
    return models


def collect_texts(model: Texts, is_mislabelled: Texts) -> Weights:
    """Return the weights of what people collect: texts on which the model contradicts their label.

    Where both are wrong, they agree, and nobody notices. If nothing is found, people collect
    everywhere.
    """
    is_found = model != is_mislabelled
    if not is_found.any():
        is_found = np.ones_like(is_found)
    weights: Weights = is_found / is_found.sum()
    return weights


def find_majority(models: Sequence[Texts]) -> Texts:
    """Return on which texts the majority of the models is wrong.

    Of an even number of models, the last one has no vote, so that there are no ties.
    """
    odd_models = models if len(models) % 2 else models[:-1]
    wrong_count = np.sum(odd_models, axis=0)
    is_wrong: Texts = 2 * wrong_count > len(odd_models)
    return is_wrong


def learn_at_random(weights: Weights, error: float, generator: np.random.Generator) -> Texts:
    """Return errors that have nothing to do with those of other models.

    Texts are taken in random order until their weight reaches the allowed error.
    """
    return _take_texts(generator.permutation(len(weights)), weights, error)


def learn_stubbornly(weights: Weights, error: float, generator: np.random.Generator) -> Texts:
    """Return errors that always include the same small core, a quarter of the squared error.

    On a path, the core is so small a part of what each round collects that it never costs too
    much: the rest of the allowed error goes to texts that nobody has collected, so that the next
    round collects those. So no number of rounds lowers the majority's error below the core.
    """
    core_size = math.ceil(len(weights) * error**2 / 4)
    others = np.arange(core_size, len(weights))
    generator.shuffle(others)
    # The lightest first: they were not collected, and more of them fit. The sort keeps the order
    # of equals.
    others = others[np.argsort(weights[others], kind="stable")]
    return _take_texts(np.concatenate([np.arange(core_size), others]), weights, error)


LEARNERS: dict[LearnerName, Learner] = {"random": learn_at_random, "stubborn": learn_stubbornly}


def _take_texts(order: NDArray[np.int64], weights: Weights, error: float) -> Texts:
    """Return the first texts of the order whose weights sum up to at most the error."""
    # A millionth of a text's weight, because the sum is rounded.
    count = int(np.searchsorted(np.cumsum(weights[order]), error + 1e-6 * weights.min(), "right"))
    is_taken = np.zeros(len(weights), bool)
    is_taken[order[:count]] = True
    return is_taken


def compute_path_bound(error: float, noise: float) -> float:
    """Return what the majority's error after three rounds of a path can't exceed.

    11 e² + 8 e n + n, and never more than 3 e; with e for the error and n for the noise.
    """
    return min(3 * error, 11 * error**2 + 8 * error * noise + noise)


def compute_hierarchy_bound(error: float, noise: float) -> float:
    """Return what the majority's error after three nodes of a hierarchy can't exceed.

    271.5 e³ without noise; e is the error of the learner.
    """
    first_node = min(3 * error, 11 * error**2 + 8 * error * noise + noise)
    second_node = min(4.5 * error, 26 * error**2 + 11 * error * noise + noise)
    third_node = 6 * error
    pairs = 10.5 * error * (first_node + noise) + 6 * error * (second_node + noise) + noise
    return min(pairs, (first_node + second_node + third_node) / 2)
