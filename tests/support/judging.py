"""Judging an example on the page."""

import re

import pytest

from annotation.models import Example, TargetOutput
from core.accounts.services import get_annotator
from tasks.models import TargetVersion
from tests.support.factories import scripted_target
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.models import OwnerDecision

URL = "/t/nli/judge/"


def write(round, author, number=0, outcome="fooled", **inputs):
    """An example as the write page would store it."""
    inputs = inputs or {"hypothesis": f"Statement {number}.", "label": "neutral"}
    return Example.objects.create(
        round=round,
        context=round.contexts.first(),
        annotator=get_annotator(author),
        goal=inputs.get("label", ""),
        inputs=inputs,
        digest=f"{number}",
        outcome=outcome,
    )


def write_many(round, author, outcomes):
    """Examples with these outcomes, as the write page would store them."""
    context, annotator = round.contexts.first(), get_annotator(author)
    return Example.objects.bulk_create(
        Example(
            round=round,
            context=context,
            annotator=annotator,
            goal="neutral",
            inputs={"hypothesis": f"Statement {number}.", "label": "neutral"},
            digest=f"{author.pk}-{number}",
            outcome=outcome,
        )
        for number, outcome in enumerate(outcomes)
    )


def decide_many(examples, labels, owner):
    """The owner's decision on each example."""
    OwnerDecision.objects.bulk_create(
        OwnerDecision(example=example, owner=owner, label=label)
        for example, label in zip(examples, labels, strict=True)
    )
    derive_consensus_of_all(examples)


def answered(example, label="entailment", **output):
    """A target's answer to the example."""
    target = scripted_target(example.round, name=f"target-{example.pk}")
    version = TargetVersion.objects.create(target=target, digest="d")
    TargetOutput.objects.create(
        example=example,
        target=target,
        version=version,
        output=output or {"label": label},
        prob={"entailment": 0.9, "neutral": 0.07, "contradiction": 0.03},
        seconds=0.1,
        fooled=True,
    )


def judge(client, answer, url=URL, **headers):
    """Answer what the page shows."""
    page = client.get(url)
    found = re.search(r'name="example" value="([^"]+)"', page.text)
    assert found, page.text
    data = {"example": found[1], "answer": answer}
    return client.post(url, data, follow=not headers, **headers)


@pytest.fixture
def example(nli, bob):
    return write(nli, bob)


@pytest.fixture(params=[{}, HTMX], ids=["page", "htmx"])
def headers(request):
    return request.param


def with_reveal(task):
    task.config_text = task.config_text.replace("reveal: false", "reveal: true")
    task.save()
