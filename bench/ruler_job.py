"""A new model joins a fitted ruler by the functions of the queue's job, on a throw-away site.

It reads the model's stored answers to all rows of the set that gave anchors, loads the fit of each
round, and stores what the model is expected to score. Nothing is fitted.
"""

import gzip
import time
from dataclasses import replace

import numpy as np

from bench.prepared import set_up_site_here
from evaluation.scoring.ruler.linking import Ruler as FittedRuler
from evaluation.scoring.ruler.packing import pack_ruler

ROUND_COUNT = 20


def measure_new_model(fitted: FittedRuler, is_right: np.ndarray) -> float:
    """Return the seconds in which a model joins a ruler with 20 rounds.

    is_right: answers to the source's rows. All models but the last are on the ruler already.
    """
    set_up_site_here()
    from evaluation.models import ExpectedScore, Ruler, RulerAnchor, RulerLink, RulerStanding
    from evaluation.runs.rulers.fitting import refresh_ruler
    from tasks.models import Task
    from tasks.services import install_official_tasks
    from tests.support.evaluations import accepted_model, nli_rows, set_version

    install_official_tasks()
    task = Task.objects.get(code="nli")
    source = set_version(task, "control", size=is_right.shape[1], source="control")
    uids = [row.uid for row in nli_rows(source.size)]
    ruler = Ruler.objects.create(
        task=task, version=1, anchor_count=len(fitted.anchors), seed=1, state="done"
    )
    RulerAnchor.objects.bulk_create(
        RulerAnchor(ruler=ruler, number=number, version=source, uid=uids[place])
        for number, place in enumerate(fitted.anchors.tolist())
    )
    models = [accepted_model(task, name=f"Model {number}") for number in range(len(is_right))]
    RulerStanding.objects.bulk_create(
        RulerStanding(
            ruler=ruler, submission=model, value=0.5,
            answers=np.packbits(answers[fitted.anchors]).tobytes(),
        )
        for model, answers in zip(models[:-1], is_right, strict=False)
    )  # fmt: skip
    content = pack_ruler(keep_first_group(fitted))
    links = RulerLink.objects.bulk_create(
        RulerLink(
            ruler=ruler, version=set_version(task, f"round-{number}"), fit=content,
            model_count=len(models) - 1, half_width=0.05, value=0.5, item_error=0.01,
        )
        for number in range(ROUND_COUNT)
    )  # fmt: skip
    ExpectedScore.objects.bulk_create(
        ExpectedScore(standing=standing, link=link, value=0.5, low=0.4, high=0.6)
        for standing in ruler.standings.all()
        for link in links
    )
    store_run(models[-1], source, uids, is_right[-1])
    started_at = time.perf_counter()
    assert refresh_ruler(ruler)
    seconds = time.perf_counter() - started_at
    standing = ruler.standings.get(submission=models[-1])
    assert standing.scores.count() == ROUND_COUNT
    return seconds


def keep_first_group(fitted: FittedRuler) -> FittedRuler:
    """Return the ruler for one group of items: the site links each round by itself."""
    predictor = fitted.predictor
    return replace(
        fitted,
        intercepts=fitted.intercepts[:1],
        slopes=fitted.slopes[:1],
        half_widths=fitted.half_widths[:1],
        even_half_widths=fitted.even_half_widths[:1],
        predictor=replace(
            predictor,
            trend_coefficients=tuple(part[:, :1] for part in predictor.trend_coefficients),
            kernel_coefficients=tuple(part[:, :1] for part in predictor.kernel_coefficients),
        ),
    )


def store_run(model: object, version: object, uids: list[str], is_right: np.ndarray) -> None:
    """Store a finished run whose answers are right where `is_right` says so."""
    from django.core.files.base import ContentFile

    from evaluation.contract import Answer
    from evaluation.isolation.inference.evaluate import build_prediction_line
    from evaluation.models import EvaluationRun
    from evaluation.test_sets.selectors import read_set_rows
    from tests.support.evaluations import LABELS

    gold = [row.gold[0] for row in read_set_rows(version)]
    lines = b"".join(
        build_prediction_line(uid, Answer(right if hit else LABELS[LABELS.index(right) - 1]))
        for uid, right, hit in zip(uids, gold, is_right, strict=True)
    )
    EvaluationRun.objects.create(
        submission=model, version=version, state="done", outcome="ok",
        predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
    )  # fmt: skip
