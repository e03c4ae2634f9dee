"""Tasks in which the author says whether the model was fooled: that claim is what others judge."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import Attempt, Example
from evaluation.dataset_releases.rows import Freezer, select_releasable_examples
from tasks.models import Round, TargetModel, Task, TaskMember
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.writing import ok, open_form, signed_in
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import get_policy
from validation.decisions.replay import replay_policy
from validation.judging.wording import MODEL_ANSWERS
from validation.models import Consensus
from validation.statistics.counts import build_target_right

TASK = """
version: 1
name: Ask
instructions: Ask something.
goal: {text: Ask a question that the model answers wrongly}
context: [{name: passage, type: text, label: Passage}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
metadata:
  validate:
    - {name: right, type: text, label: "Right?", required: false, when: {verdict: incorrect}}
verdict: {type: ask_user}
metrics: {main: squad_f1}
validation: {votes: {needed: 2}, judge_not_fooled: 1, reveal: true}
"""
WRITE, JUDGE = "/t/ask/write/", "/t/ask/judge/"
AUTHOR_SAID = 'id="author-said"'


@pytest.fixture
def ask(db):
    round = Round.objects.create(
        task=Task.objects.create(code="ask", name="Ask", config_text=TASK), number=1, state="open"
    )
    ContextFactory(round=round, fields={"passage": "The bus stops at Tarn."})
    scripted_target(round, output={"reply": "At Lund Bridge."})
    return round


def written(alice, claim):
    """An example, and what its author says of the model's answer; "": nothing yet."""
    client = signed_in(alice)
    pk = ok(client.get(WRITE)).context["work"].assignment.pk
    key = "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10"
    form = {"attempt_key": key, "assignment": pk, "goal": "", "question": "Where does it stop?"}
    ok(client.post(WRITE, form, **HTMX))
    example = Example.objects.get()
    assert example.outcome == "undecided"
    if claim:
        said = {"model_right": {"right": "yes", "wrong": "no"}[claim]}
        ok(client.post(f"/attempt/{example.uuid}/answer/", said, **HTMX))
        example.refresh_from_db()
    return example


def judges(example, answer, number=2):
    """As many people as decide give this answer on the page; gives what the last one read."""
    for n in range(number):
        client = signed_in(UserFactory(email=f"{answer}{n}@example.com"))
        page = ok(client.get(JUDGE))
        sent = {"example": example.uuid, "answer": f"verdict:{answer}"}
        after = ok(client.post(JUDGE, sent, **HTMX))
    return page, after


@pytest.mark.parametrize(
    ("claim", "answer", "verified", "error"),
    [
        ("wrong", "incorrect", True, True),
        ("wrong", "correct", False, False),
        ("right", "correct", True, False),
        ("right", "incorrect", False, False),
    ],
)
def test_a_vote_on_the_models_answer_confirms_its_author_or_not(
    ask, alice, claim, answer, verified, error
):
    example = written(alice, claim)
    page, after = judges(example, answer)
    assert page.context["model_said"] == [("scripted", "At Lund Bridge.")]
    assert "At Lund Bridge." in page.text
    assert "Is the model&#x27;s answer correct?" in page.text
    author = {"right": "the model is right", "wrong": "the model is wrong"}[claim]
    assert f"<em>{author}</em>" in after.text
    assert AUTHOR_SAID in after.text
    assert "said <em></em>" not in after.text
    consensus = Consensus.objects.get()
    stored = consensus.verdict, consensus.is_verified, consensus.is_validated_error
    assert stored == (answer, verified, error)
    (case,) = replay_policy(ask, get_policy(ask))  # the whole round replay says the same
    assert (case.status.is_verified, case.status.is_validated_error) == (verified, error)


@pytest.mark.parametrize(
    ("claim", "answer", "label"),
    [("right", "correct", "At Lund Bridge."), ("wrong", "incorrect", "")],
)
def test_a_release_names_the_models_answer_as_right_only_if_it_is(ask, alice, claim, answer, label):
    judges(written(alice, claim), answer)
    ((frozen,),) = Freezer(ask).iterate_chunks(select_releasable_examples(ask))
    assert (frozen.row["label"], frozen.row["model_wrong"]) == (label, claim == "wrong")


@pytest.mark.parametrize("said", ["  ", "on and on " * 5_000], ids=["nothing", "no end"])
def test_what_is_no_answer_makes_no_example(ask, alice, said):
    TargetModel.objects.update(options={"output": {"reply": said}})
    client = signed_in(alice)
    form = open_form(client, WRITE, question="Where does it stop?")
    page = client.post(WRITE, form, **HTMX)
    assert 'id="failed"' in page.text
    assert not Example.objects.exists()
    assert Attempt.objects.get().inputs == {"question": "Where does it stop?"}


def test_what_judges_read_does_not_tell_what_the_author_says(ask, alice, bob):
    pages = []
    for claim in ("right", "wrong"):
        example = written(alice, claim)
        pages.append(ok(signed_in(bob).get(JUDGE)).text.replace(str(example.uuid), "UUID"))
        Example.objects.all().delete()
        ask.refresh_from_db()
    one, other = ([line for line in page.splitlines() if "csrf" not in line] for page in pages)
    assert one == other


def test_who_says_that_the_model_is_wrong_is_asked_what_is_right(ask, alice):
    example = written(alice, "wrong")
    assert 'name="right"' not in judges(example, "correct", 1)[1].text
    assert 'name="right"' in judges(example, "incorrect", 1)[1].text


def test_the_author_speaks_first(ask, alice, bob):
    """Nobody judges for an hour what its author has not spoken about; then the author is late."""
    example = written(alice, "")
    assert str(example.uuid) not in ok(signed_in(bob).get(JUDGE)).text
    Example.objects.update(created_at=timezone.now() - timedelta(hours=2))
    after = judges(example, "incorrect", 1)[1]
    assert AUTHOR_SAID not in after.text
    assert "said <em></em>" not in after.text
    client = signed_in(alice)
    client.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"})
    example.refresh_from_db()
    assert example.outcome == "undecided"
    assert "model_right" not in ok(client.get(f"/attempt/{example.uuid}/")).text
    api = client.post(
        f"/api/v1/examples/{example.uuid}/answer/", {"model_right": False},
        content_type="application/json",
    )  # fmt: skip
    assert api.status_code == 403, api.text


def test_the_api_shows_what_is_judged(ask, alice, bob):
    example = written(alice, "wrong")
    client = signed_in(bob)
    item = client.post("/api/v1/tasks/ask/judging/next/", content_type="application/json").json()
    assert item["model_said"] == [{"target": "scripted", "said": "At Lund Bridge."}]
    assert [one["vote"] for one in item["choices"]][:2] == ["verdict:correct", "verdict:incorrect"]
    url = f"/api/v1/examples/{example.uuid}/validations/"
    made = client.post(url, {"vote": "verdict:incorrect"}, content_type="application/json").json()
    assert made["revealed"]["author_said"] == "incorrect"


def test_owner_and_author_read_what_was_judged(ask, alice, bob):
    TaskMember.objects.create(task=ask.task, user=bob, role="owner")
    example = written(alice, "wrong")
    judges(example, "incorrect")
    page = ok(signed_in(bob).get(f"/own/ask/review/{example.uuid}/"))
    assert page.context["decided"] == MODEL_ANSWERS["incorrect"]
    mine = ok(signed_in(alice).get("/me/"))
    assert MODEL_ANSWERS["incorrect"] in mine.text


def test_where_no_model_was_asked_the_example_is_judged(ask, alice):
    ask.round_targets.all().delete()
    client = signed_in(alice)
    pk = ok(client.get(WRITE)).context["work"].assignment.pk
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "assignment": pk, "goal": ""}
    ok(client.post(WRITE, form | {"question": "Where?"}, **HTMX))
    example = Example.objects.get()
    assert example.outcome == "no_model"
    page, after = judges(example, "correct")
    assert page.context["model_said"] == []
    assert "said <em></em>" not in after.text
    assert Consensus.objects.get().is_verified


def test_correct_says_that_the_target_is_right_whatever_its_author_says():
    choices = [("", "correct"), ("", "incorrect"), ("", "flagged")]
    assert build_target_right(choices, "fooled", None, True) == [True, False, None]
    assert build_target_right(choices, "fooled", None, False) == [False, None, None]


@pytest.mark.parametrize(
    ("pattern", "outcome", "answer", "verified"),
    [
        ("(?i)lund", "fooled", "incorrect", True),
        ("(?i)lund", "fooled", "correct", False),
        ("Tarn", "not_fooled", "correct", True),
    ],
)
def test_a_pattern_decides_and_judges_confirm_it(alice, db, pattern, outcome, answer, verified):
    rule = f"{{type: pattern, field: reply, pattern: '{pattern}', forbidden: true}}"
    text = TASK.replace("{type: ask_user}", rule)
    task = Task.objects.create(code="ask", name="Ask", config_text=text)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"passage": "The bus stops at Tarn."})
    scripted_target(round, output={"reply": "At Lund Bridge."})
    client = signed_in(alice)
    pk = ok(client.get(WRITE)).context["work"].assignment.pk
    key = "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10"
    form = {"attempt_key": key, "assignment": pk, "goal": "", "question": "Where does it stop?"}
    said = ok(client.post(WRITE, form, **HTMX))
    example = Example.objects.get()
    assert example.outcome == outcome
    assert "At Lund Bridge." in said.text
    assert "model_right" not in said.text
    page, after = judges(example, answer)
    assert page.context["model_said"] == [("scripted", "At Lund Bridge.")]
    assert 'id="rule-says"' in after.text
    assert AUTHOR_SAID not in after.text
    consensus = Consensus.objects.get()
    assert (consensus.verdict, consensus.is_verified) == (answer, verified)
    frozen = [
        row
        for chunk in Freezer(round).iterate_chunks(select_releasable_examples(round))
        for row in chunk
    ]
    assert [one.row["model_wrong"] for one in frozen] == [outcome == "fooled"] * verified


def ruled(alice, validation):
    """An example that a pattern says fooled the model, in a task judged as `validation` says."""
    rule = "{type: pattern, field: reply, pattern: Lund, forbidden: true}"
    text = TASK.replace("{type: ask_user}", rule).replace("reveal: true", validation)
    task = Task.objects.create(code="ask", name="Ask", config_text=text)
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"passage": "The bus stops at Tarn."})
    scripted_target(round, output={"reply": "At Lund Bridge."})
    ok(signed_in(alice).post(WRITE, open_form(signed_in(alice), WRITE, question="Where?"), **HTMX))
    return Example.objects.get()


def test_judges_vote_only_on_the_attempt_where_a_rule_has_decided(alice, db):
    words = 'asks: attempt, question: Fair here, answers: {correct: Fine, incorrect: "Not so"}'
    example = ruled(alice, words)
    url = f"/api/v1/examples/{example.uuid}/validations/"
    program = signed_in(UserFactory(email="by-program@example.com"))
    item = program.post("/api/v1/tasks/ask/judging/next/", content_type="application/json").json()
    assert item["question"] == "Fair here"
    offered = {one["vote"]: one["words"] for one in item["choices"]}
    assert offered["verdict:incorrect"] == "Fine"
    assert offered["verdict:flagged"] == "Not so"
    assert "verdict:correct" not in offered
    denied = program.post(url, {"vote": "verdict:correct"}, content_type="application/json")
    assert denied.status_code == 422
    program.post(f"/api/v1/examples/{example.uuid}/skip/", content_type="application/json")
    client = signed_in(UserFactory(email="no@example.com"))
    page = ok(client.get(JUDGE))
    no = {"example": example.uuid, "answer": "verdict:flagged"}
    asked = ok(client.post(JUDGE, no, **HTMX))  # a no needs its reason
    assert asked.context["flag_form"] is not None
    assert not example.validations.exists()
    assert page.context["asks"] == "Fair here"
    ok(client.post(JUDGE, no | {"answer": "verdict:incorrect"}, **HTMX))
    judges(example, "incorrect", 1)
    consensus = Consensus.objects.get()
    assert (consensus.verdict, consensus.is_validated_error) == ("incorrect", True)


def test_votes_from_before_keep_their_meaning_when_attempts_are_asked_about(alice, db):
    example = ruled(alice, "reveal: false")
    judges(example, "correct", 2)  # they said that the model was right
    before = Consensus.objects.values("verdict", "is_verified").get()
    task = Task.objects.get()
    task.config_text = task.config_text.replace("reveal: false", "asks: attempt")
    task.save()
    (case,) = replay_policy(Round.objects.get(), get_policy(Round.objects.get()))
    assert {"verdict": case.status.verdict, "is_verified": case.status.is_verified} == before
    mine = ok(signed_in(alice).get("/me/"))
    assert MODEL_ANSWERS["correct"] in mine.text


def test_writers_are_asked_in_the_words_of_the_task(ask, alice):
    words = 'question: Did it lie?, answers: {correct: "No lie", incorrect: "A lie"}'
    ask.task.config_text = TASK.replace("type: ask_user", f"type: ask_user, {words}")
    ask.task.config_text = ask.task.config_text.replace("Did it lie?", '"Did it lie?"')
    ask.task.save()
    example = written(alice, "")
    page = ok(signed_in(alice).get(f"/attempt/{example.uuid}/"))
    assert page.context["asked"] == ("Did it lie?", "No lie", "A lie")
    assert "Did it lie?" in page.text
    client = signed_in(alice)
    part = client.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"}, **HTMX).text
    trail = part.split(f'id="recent-{example.uuid}"')[1]
    assert 'class="dot fooled"' in trail  # the trail below knows at once
    assert "A lie" in ok(client.get(f"/attempt/{example.uuid}/")).context["heading"]


def test_nobody_writes_another_before_they_answer(ask, alice):
    """The button is not there, and an old page's brings back the question."""
    example = written(alice, "")
    client = signed_in(alice)
    url = f"/attempt/{example.uuid}/"
    assert 'id="next"' not in ok(client.get(url)).text
    again = client.post(f"{WRITE}next/", {"want": "passage"})
    assert again["Location"] == url
    part = ok(client.post(f"{WRITE}next/", {"want": "passage"}, **HTMX))
    assert part.context["example"] == example
    assert 'name="model_right"' in part.text
    client.post(f"{url}answer/", {"model_right": "no"})
    assert 'id="next"' in ok(client.get(url)).text
    assert client.post(f"{WRITE}next/", {"want": "passage"})["Location"] == WRITE
