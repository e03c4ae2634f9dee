"""Suggestions and worked examples for writers."""

from annotation.models import Example
from dynabench.accounts.models import Annotator
from tasks.models import Generator
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
