"""A round with a judge model, of which people judged a random sample."""

import pytest

from annotation.models import Example
from tasks.models import TargetModel, TaskMember
from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.consensus.vote_draws import DrawRule
from validation.decisions.services import derive_round
from validation.judging.draw_services import change_draw
from validation.judging.judge_models import ask_judge_models

EXAMPLES = 60
SURE = {"label": "neutral", "prob": {"neutral": 0.9, "entailment": 0.1}}
UNSURE = {"contains": "unclear", "label": "neutral", "prob": {"neutral": 0.6, "entailment": 0.4}}


@pytest.fixture
def sampled(nli, alice):
    """Sixty possible catches of six authors and six tries, some of which people judge."""
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    authors = [UserFactory() for _ in range(6)]
    for number in range(EXAMPLES):
        word = "unclear" if number % 4 == 0 else "clear"
        text = {"hypothesis": f"An {word} statement {number}.", "label": "neutral"}
        write(nli, authors[number % 6], number, **text)
    for number in range(EXAMPLES, EXAMPLES + 6):
        write(nli, authors[number % 6], number, outcome="not_fooled")
    judge = TargetModel.objects.create(
        task=nli.task,
        name="judge",
        adapter="scripted",
        url="http://scripted.test",
        options={**SURE, "rules": [UNSURE]},
    )
    change_draw(round=nli, owner=alice, rule=DrawRule(judge.pk, min_chance=0.2))
    assert ask_judge_models()
    people = [UserFactory() for _ in range(3)]
    for example in Example.objects.filter(round=nli, queue_item__isnull=False):
        number = int(example.inputs["hypothesis"].rstrip(".").split()[-1])
        label = "neutral" if number % 3 else "entailment"
        voted(example, *[Vote(label)] * 3, by=people)
    derive_round(round=nli)
    return nli
