"""A task whose models answer held-back rows and rounds by their ability, for tests of rulers."""

import gzip

import numpy as np
from django.core.files.base import ContentFile

from core.jobs.queue import silence_queue
from evaluation.contract import Answer
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.jobs import choose_ruler
from evaluation.models import EvaluationRun, Score
from evaluation.runs.rulers.services import request_ruler
from tests.support.compared_models import rows_of
from tests.support.evaluations import LABELS, accepted_model, set_version
from tests.support.factories import RoundFactory

HELD, FIRST, SECOND = "round-1-held", "round-1", "round-2"
SIZE, ANCHORS = 60, 20


def make_sets(task, size=SIZE):
    """A sealed set of held-back rows, and the sets of two rounds; return the three versions."""
    rounds = [RoundFactory(task=task, number=number, state="closed") for number in (1, 2)]
    rows = rows_of(size)
    held = set_version(
        task, HELD, rows=rows, source="held", held_of=rounds[0], answers_public=False,
        access="standard",
    )  # fmt: skip
    others = [
        set_version(task, f"round-{round.number}", rows=rows, source="round", round=round)
        for round in rounds
    ]
    return held, *others


def let_answer(task, versions, count, *, seed=1, harder=0.0, first=0):
    """Publish models and let each answer these versions; the last one is `harder` (logits)."""
    chance = np.random.default_rng(seed)
    models = []
    for number in range(first, first + count):
        model = accepted_model(task, name=f"model {number}", is_published=True)
        ability = 4 * ((number * 7) % 24) / 23 - 2
        for place, version in enumerate(versions):
            shift = harder * (place == len(versions) - 1)
            logits = 2 * (ability - np.linspace(-1.5, 1.5, version.size)) - shift
            answer(model, version, chance.random(version.size) < 1 / (1 + np.exp(-logits)))
        models.append(model)
    return models


def answer(model, version, is_right):
    """Store a finished run with right answers where `is_right` says so."""
    lines = b"".join(
        build_prediction_line(f"u{place}", Answer(LABELS[(place + (not right)) % 3]))
        for place, right in enumerate(is_right)
    )
    run = EvaluationRun.objects.create(
        submission=model,
        version=version,
        state="done",
        outcome="ok",
        predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
    )
    share = float(np.mean(is_right))
    for metric in ("accuracy", "macro_f1"):
        Score.objects.create(
            run=run, metric=metric, value=share, low=max(0, share - 0.1), high=min(1, share + 0.1),
            n=version.size,
        )  # fmt: skip
    return run


def make_ruler(task, owner, *, answers_public=False):
    """Have a ruler chosen and refreshed. answers_public: whether its anchors are no secret."""
    if answers_public:
        task.evaluation_sets.filter(name=HELD).update(answers_public=True)
    with silence_queue():
        ruler = request_ruler(task=task, actor=owner, anchors=ANCHORS, seed=3)
    choose_ruler(ruler.pk)
    ruler.refresh_from_db()
    assert ruler.state == "done", ruler.error
    return ruler
