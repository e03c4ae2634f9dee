"""Suggestions and worked examples for writers."""

from annotation.models import Example
from core.accounts.models import Annotator
from evaluation.models import Dataset, DatasetItem
from tasks.models import Generator, Round
from validation.models import Consensus

MUSE = "A muse has written this."


def allow(task):
    """Switch suggestions on."""
    task.config_text = task.config_text.replace("\nsupport:\n", "\nsupport:\n  suggestions: true\n")
    task.save()
    assert task.config.support.suggestions


def generator(task, **options):
    field = task.config.text_field
    return Generator.objects.create(
        task=task,
        name="muse",
        adapter="scripted",
        url="http://muse.test",
        options=options or {"output": {field: f"  {MUSE} "}},
    )


def worked_example(round, author=None, context=None, text="Bob's idea.", **fields):
    """One that fooled the model and was found right."""
    context = context or round.contexts.last()
    count = Example.objects.count()
    example = Example.objects.create(
        round=round,
        context=context,
        annotator=author or Annotator.objects.create(pseudonym=f"w-{count}"),
        inputs={"hypothesis": text, "label": "neutral", "id of a worker": "secret-7"},
        digest=str(count),
        outcome="fooled",
        **fields,
    )
    Consensus.objects.create(
        example=example,
        round=round,
        state="decided",
        votes=3,
        still_needed=0,
        label="neutral",
        is_verified=True,
        is_validated_error=True,
    )
    return example


def earlier_round(round, before=1):
    """A round of the same task with the same contexts, to be released by `publish`."""
    earlier, is_new = Round.objects.get_or_create(task=round.task, number=round.number - before)
    if is_new:
        for context in round.contexts.order_by("pk"):
            earlier.contexts.create(fields=context.fields, digest=context.digest)
    return earlier


def next_round(round):
    """The round after this one, which closes; it is open, with the same contexts and targets."""
    Round.objects.filter(pk=round.pk).exclude(state="released").update(state="closed")
    later = Round.objects.create(task=round.task, number=round.number + 1, state="draft")
    for context in round.contexts.order_by("pk"):
        later.contexts.create(fields=context.fields, digest=context.digest)
    for one in round.round_targets.all():
        later.round_targets.create(target=one.target, position=one.position)
    Round.objects.filter(pk=later.pk).update(state="open")
    later.refresh_from_db()
    return later


def publish(example, split="train", **options):
    """The example as a row of its round's first release."""
    Round.objects.filter(pk=example.round_id).update(state="released")
    dataset, _ = Dataset.objects.get_or_create(
        round=example.round, version=1, defaults={"state": "done", "options": options}
    )
    position = dataset.items.count()
    return DatasetItem.objects.create(
        dataset=dataset,
        position=position,
        split=split,
        uid=example.uuid,
        example=example,
        line="{}",
    )


def released_example(round, split="train", before=1, **fields):
    """One that worked in an earlier round, whose release has put it into this split."""
    example = worked_example(earlier_round(round, before), **fields)
    publish(example, split)
    return example
