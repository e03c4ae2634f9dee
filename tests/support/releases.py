"""A closed round that can be released, and what is read of its releases."""

import json

import pytest
from django.utils import timezone

from annotation.models import Example, TargetOutput
from core.accounts.models import Annotator
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.jobs import build_dataset
from tasks.models import Round, TargetVersion
from tests.support.factories import scripted_target
from validation.decisions.consensus_rows import derive_consensus, derive_consensus_of_all
from validation.models import Validation

LABELS = ("entailment", "neutral", "contradiction")
SPLITS = ("train", "dev", "test")


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def people(db):
    rows = [Annotator(pseudonym=f"w-secret{number:02}") for number in range(16)]
    return Annotator.objects.bulk_create(rows)


@pytest.fixture
def closed(nli, people):
    """A closed round: 12 authors with six examples each, which the last three people judged.

    Of each author's, two fooled the model and were confirmed, two are confirmed although they did
    not, one nobody judged, and one was refuted.
    """
    contexts = list(nli.contexts.all())
    target = scripted_target(nli, name="nli-target")
    version = TargetVersion.objects.create(target=target, digest="d" * 64)
    turns = [(number, turn) for number in range(12) for turn in range(6)]
    examples = Example.objects.bulk_create(
        Example(
            round=nli,
            context=contexts[number % 3],
            annotator=people[number],
            goal=(label := LABELS[(number + turn) % 3]),
            inputs={"hypothesis": f"Statement {turn} of {number}, “é”.", "label": label},
            metadata={"why_right": ["negation"], "worker_id": "A1SECRETWORKER"},
            digest=f"{number}-{turn}",
            outcome="fooled" if turn < 2 else "not_fooled",
            shown_at=timezone.now(),
        )
        for number, turn in turns
    )
    TargetOutput.objects.bulk_create(
        TargetOutput(
            example=example,
            target=target,
            version=version,
            output={"label": "neutral"},
            prob={"neutral": 0.75, "entailment": 0.25},
            seconds=0.1,
            fooled=example.outcome == "fooled",
        )
        for example in examples
    )
    Validation.objects.bulk_create(
        vote
        for example, (_, turn) in zip(examples, turns, strict=True)
        if turn != 4
        for vote in votes(example, people[12:15], "wrong-label" if turn == 5 else example.goal)
    )
    derive_consensus_of_all(examples)
    Round.objects.filter(pk=nli.pk).update(state="closed")
    nli.refresh_from_db()
    return nli


def votes(example, validators, label):
    """A vote of each, not stored yet."""
    return [
        Validation(
            example=example, validator=validator, author_id=example.annotator_id, label=label
        )
        for validator in validators
    ]


def judge(example, validators, label):
    Validation.objects.bulk_create(votes(example, validators, label))
    derive_consensus(example, list(example.validations.all()))


def released(round, **options):
    """The next version, made as a worker makes it."""
    wanted = {"dev": 8, "test": 8, **options}
    dataset = request_release(round=round, options=Options(**wanted), actor=None)
    build_dataset(dataset.pk)
    dataset.refresh_from_db()
    assert dataset.state == "done", dataset.error
    return dataset


def content(dataset, name):
    with dataset.files.get(name=name).file.open() as file:
        return file.read()


def lines(dataset, split):
    return [json.loads(line) for line in content(dataset, f"{split}.jsonl").splitlines()]
