"""An author's claim about the model reaches a judge before the vote: in fields and in headings.

Beside the conversation the author of "Grounded conversation" says how the answer is wrong, that of
"Keep the secret" how they tried, and the label of the conversation asks which answer is wrong. Who
reads that has not judged for themselves.
"""

import pytest

from tasks.config.checks import find_contradictions
from tasks.config.loading import dump_config, load_config
from tasks.making.templates import GALLERY_FOLDER
from tasks.services import OFFICIAL_FOLDER
from tests.api.conftest import api_of  # noqa: F401 - a fixture
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from tests.support.judging import write
from tests.web.conftest import _fast_and_clean, alice, as_alice, bob  # noqa: F401 - fixtures
from validation.judging import blind
from validation.judging.page import describe_missed_answer, list_shown_inputs
from validation.models import Gold, GoldAnswer, Validation

TALK = [
    {"role": "user", "text": "When did it close?"},
    {"role": "assistant", "text": "It closed in 1941."},
]
CLAIMS = {"grounded": ("how", "It makes something up"), "secret": ("way", "several turns")}
CONTEXTS = {"grounded": {"passage": "It closed in 1931."}, "secret": {"scene": "A night porter."}}


@pytest.fixture(params=CLAIMS)
def example(db, request, bob):  # noqa: F811
    round = RoundFactory(task=TaskFactory(code=request.param))
    ContextFactory(round=round, fields=CONTEXTS[request.param])
    field, said = CLAIMS[request.param]
    return write(round, bob, talk=TALK, **{field: said})


def told(example):
    """What the author claims, in the words of the page, and the question that contains it."""
    config = example.round.task.config
    field, said = CLAIMS[example.round.task.code]
    return said, config.get_component(field).title, config.get_component("talk").title


def test_the_page_shows_neither_the_claim_nor_the_question_for_it(as_alice, example):  # noqa: F811
    page = as_alice.get(f"/t/{example.round.task.code}/judge/").text
    work = page[page.index('id="work"') : page.index("</main>")]
    assert "It closed in 1941." in work
    assert not [words for words in told(example) if words in work]


def test_the_api_gives_only_the_conversation(api_of, alice, example):  # noqa: F811
    task = example.round.task
    task.config_text += "programs: {judge: true}\n"
    task.save()
    item = api_of(alice).post(f"/api/v1/tasks/{task.code}/judging/next/").json()
    assert item["inputs"] == {"talk": TALK}
    assert not [words for words in told(example) if words in str(item)]


def test_a_missed_gold_item_shows_no_more(example, alice):  # noqa: F811
    gold = Gold(example=example, verdict="incorrect")
    answer = GoldAnswer(gold=gold, validator=alice.annotator, verdict="correct", is_correct=False)
    assert len(describe_missed_answer(example.round.task.config, answer)["inputs"]) == 1


def test_nobody_asks_whether_the_word_that_was_told_is_correct(as_alice, example):  # noqa: F811
    """Right attacks died: "Is the model's answer correct?" of a model that told the true secret."""
    code = example.round.task.code
    asked = as_alice.get(f"/t/{code}/judge/").context["asks"]
    assert asked == example.round.task.config.validation.question or code == "grounded"
    as_alice.post(f"/t/{code}/judge/", {"example": example.uuid, "answer": "verdict:incorrect"})
    assert Validation.objects.get().verdict == "incorrect"


@pytest.mark.parametrize(
    "path", [*OFFICIAL_FOLDER.glob("*/task.yaml"), *GALLERY_FOLDER.glob("*.yaml")], ids=str
)
def test_judges_of_no_task_that_is_shipped_see_more_than_is_judged(path):
    config = load_config(path.read_text())
    may = {*config.model_fields, *config.target_fields} - {"note"}
    assert {*config.judged_fields} <= may
    if config.validation.mode == "label":
        assert not {*config.judged_fields} & {*config.target_fields}


def test_a_task_may_say_otherwise(example):
    task = example.round.task
    field = CLAIMS[task.code][0]
    task.config_text = task.config_text.replace(
        f"- name: {field}\n", f"- name: {field}\n    judges_see: true\n    judges_label: Why?\n"
    )
    assert [*blind.build_blind_inputs(task.config, example)] == ["talk", field]
    assert list_shown_inputs(task.config, example)[1][0] == "Why?"
    assert not find_contradictions(task.config)
    assert load_config(dump_config(task.config)) == task.config
