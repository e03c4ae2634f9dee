"""Models whose answers depend on their ability, for tests of items' properties."""

import gzip

import numpy as np
from django.core.files.base import ContentFile

from evaluation.contract import Answer
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.models import EvaluationRun
from tests.support.evaluations import LABELS, accepted_model

SIZE, WRONG = 40, 7
"""Of the sets, and the place of an item whose label is wrong."""


def answer_by_ability(version, count, seed=1, first=0, known=None):
    """Let models answer; later items are harder, and one has the wrong label.

    known: the place of an item that all of them know.
    """
    chance = np.random.default_rng(seed)
    for number in range(first, first + count):
        ability = 3 * (number % 24) / 23 - 1.5
        logits = 2.5 * (ability - np.linspace(-1.5, 1.5, SIZE))
        logits[WRONG] = -2.5 * ability
        if known is not None:
            logits[known] = 3
        right = chance.random(SIZE) < 1 / (1 + np.exp(-logits))
        _store_run(version, f"model {number}", right)


def answer_in_two_languages(version, count, *, bad, seed=1):
    """Let models answer a set whose second half are translations, which are harder by 1 logit.

    bad: the place of a translation that only few have right.
    """
    chance, half = np.random.default_rng(seed), SIZE // 2
    for number in range(count):
        ability = 3 * (number % 24) / 23 - 1.5
        logits = np.tile(ability - np.linspace(-2, 0.5, half), 2)
        logits[half:] -= 1
        logits[bad] = -4
        right = chance.random(SIZE) < 1 / (1 + np.exp(-logits))
        _store_run(version, f"model {number}", right)


def _store_run(version, name, right):
    """Store a finished run of a new model, right where `right` says so."""
    lines = b"".join(
        build_prediction_line(f"u{place}", Answer(LABELS[(place + (not right[place])) % 3]))
        for place in range(SIZE)
    )
    EvaluationRun.objects.create(
        submission=accepted_model(version.evaluation_set.task, name=name),
        version=version,
        state="done",
        outcome="ok",
        predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
    )
