"""Tasks whose answer is a free text, by each verdict rule: from writing to the evaluation set."""

import gzip
import io
import itertools
import json
import re
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet
import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command

from annotation.models import Assignment, Example
from dynabench.people.work import build_example_rows, build_status_conditions, select_own_examples
from evaluation.contract import SetRow
from evaluation.jobs import evaluate_next
from evaluation.models import Score
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.shown_scores import round_number
from evaluation.test_sets.source_services import make_round_version
from leaderboard.jobs import renew_boards
from tasks.config.loading import check_config
from tasks.models import Round, Task, TaskMember
from tasks.services import create_task
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.releases import content, lines, released
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy
from validation.models import Consensus, RoundPolicy
from validation.statistics.report import build_task_report

DYNABENCH1 = Path(__file__).parents[1] / "fixtures/dynabench1"
BOARD = "/t/free/leaderboard/"
KEY = "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10"
SAID = "It stops at Lund Bridge."
RULES = {
    "ask_user": "{type: ask_user}",
    "string_f1": "{type: string_f1, field: reply}",
    "exact_match": "{type: exact_match, fields: [reply]}",
    "contains": "{type: contains, field: reply}",
    "pattern": "{type: pattern, field: reply, pattern: '(?i)lund', forbidden: true}",
}
OF_MODEL = ("ask_user", "pattern")  # what is judged is the model's answer, not the author's


def config_text(rule, kind="text"):
    own = "" if rule in OF_MODEL else f", {{name: reply, type: {kind}, label: Right answer}}"
    return f"""
version: 1
name: Free
instructions: Ask something.
goal: {{text: Ask a question that the model answers wrongly}}
context: [{{name: passage, type: text, label: Passage}}]
input: [{{name: question, type: text, label: Your question}}{own}]
output: [{{name: reply, type: {kind}}}]
verdict: {RULES[rule]}
metrics: {{main: squad_f1, also: [exact_match, chrf, bleu, rouge_l]}}
validation: {{votes: {{needed: 2}}, judge_not_fooled: 1, corrections: true}}
"""


@pytest.fixture
def free(db, settings, tmp_path):
    """Opens a round of a task with that verdict rule, whose model says SAID; gives its owner."""
    settings.MEDIA_ROOT = tmp_path

    def opened(rule, kind="text"):
        text = config_text(rule, kind)
        task = Task.objects.create(code="free", name="Free", config_text=text)
        owner = UserFactory(email="owner@example.com")
        TaskMember.objects.create(task=task, user=owner, role="owner")
        round = Round.objects.create(task=task, number=1, state="open")
        ContextFactory(round=round, fields={"passage": "The bus stops at Tarn."})
        scripted_target(round, output={"reply": SAID})
        return SimpleNamespace(round=round, as_owner=signed_in(owner))

    return opened


def written(client, rule):
    """An example that fools the model; the page of its verdict."""
    ok(client.get("/t/free/write/"))
    form = {"attempt_key": KEY, "assignment": Assignment.objects.get().pk, "goal": ""}
    form |= {"question": "Where does the bus stop?"}
    form |= {} if rule in OF_MODEL else {"reply": "Tarn"}
    page = ok(client.post("/t/free/write/", form, **HTMX))
    example = Example.objects.get()
    if rule == "ask_user":
        said = {"model_right": "no"}
        ok(client.post(f"/attempt/{example.uuid}/answer/", said, **HTMX))
        example.refresh_from_db()
    return example, page


def judge(example, answer, *corrections):
    """Somebody for each correction judges it with plain forms, as without JavaScript."""
    for number, text in enumerate(corrections):
        client = signed_in(UserFactory(email=f"judge{number}@example.com"))
        page = ok(client.get("/t/free/judge/"))
        sent = {"example": example.uuid, "answer": f"verdict:{answer}"}
        after = ok(client.post("/t/free/judge/", sent, follow=True))
        assert ('name="correction"' in after.text) == (answer == "incorrect")
        if answer == "incorrect":
            ok(client.post(f"/judge/{example.uuid}/after/", {"correction": text}, follow=True))
    return page


@pytest.mark.parametrize("kind", ["text", "long_text"])
@pytest.mark.parametrize("rule", RULES)
def test_from_writing_to_the_evaluation_set(rule, kind, free, alice):
    task, author = free(rule, kind), signed_in(alice)
    example, verdict = written(author, rule)
    assert SAID in verdict.text
    assert example.outcome == "fooled"
    confirm = "incorrect" if rule in OF_MODEL else "correct"
    page = judge(example, confirm, "Tarn", "tarn.")
    assert "The bus stops at Tarn." in page.text
    assert "Where does the bus stop?" in page.text
    assert (SAID if rule in OF_MODEL else "Right answer") in page.text
    consensus = Consensus.objects.get()
    assert (consensus.verdict, consensus.is_validated_error) == (confirm, True)
    (numbers,) = build_task_report([task.round], code="free")["rounds"]
    assert (numbers["fooled"], numbers["verified_fooled"]) == (1, 1)  # vMER's numerator

    mine = ok(author.get("/me/"))
    assert SAID in mine.text
    assert ('data-correction="Tarn"' in mine.text) == (rule in OF_MODEL)
    review = ok(task.as_owner.get(f"/own/free/review/{example.uuid}/"))
    assert SAID in review.text
    votes = ok(task.as_owner.get("/api/v1/tasks/free/rounds/1/validations/")).json()["results"]
    corrections = [vote["metadata"].get("correction") for vote in votes]
    assert corrections == (["Tarn", "tarn."] if rule in OF_MODEL else [None, None])

    Round.objects.update(state="closed")
    task.round.refresh_from_db()
    (row,) = read_set_rows(make_round_version(task.round))
    assert row.gold == ("Tarn",)
    dataset = released(task.round, dev=0, test=0)
    (line,) = lines(dataset, "train")
    assert line["label"] == "Tarn"
    assert json.loads(line["output_json"]) == {"reply": SAID}
    assert [vote[0] for vote in line["validations"]] == [confirm] * 2
    assert [one["answer"] for one in line["corrections"]] == [c for c in corrections if c]
    table = pyarrow.parquet.read_table(io.BytesIO(content(dataset, "train.parquet")))
    assert table.to_pylist()[0]["corrections"] == line["corrections"]
    croissant = json.loads(content(dataset, "croissant.json"))
    assert "corrections" in json.dumps(croissant)
    assert "corrections" in content(dataset, "README.md").decode()


def test_a_right_answer_is_the_models_own(free, alice):
    task = free("ask_user")
    example, _ = written(signed_in(alice), "ask_user")
    Example.objects.update(outcome="not_fooled")
    judge(example, "correct", "", "")
    Round.objects.update(state="closed")
    task.round.refresh_from_db()
    (row,) = read_set_rows(make_round_version(task.round))
    assert row.gold == (SAID,)


def test_an_example_without_a_right_answer_is_in_no_set(free, alice):
    task = free("ask_user")
    example, _ = written(signed_in(alice), "ask_user")
    judge(example, "incorrect", "", "")
    Round.objects.update(state="closed")
    task.round.refresh_from_db()
    assert make_round_version(task.round) is None
    (line,) = lines(released(task.round, dev=0, test=0), "train")
    assert (line["label"], line["model_wrong"], line["corrections"]) == ("", True, [])


def test_programs_read_the_question_and_answer_it(free, alice, bob):
    free("ask_user")
    example, _ = written(signed_in(alice), "ask_user")
    client = signed_in(bob)
    client.post("/api/v1/tasks/free/judging/next/", content_type="application/json")
    url, kind = f"/api/v1/examples/{example.uuid}/validations/", "application/json"
    made = client.post(url, {"vote": "verdict:incorrect"}, content_type=kind).json()
    assert made["questions"] == ["correction"]
    typed = {"metadata": {"correction": "Tarn"}}
    answered = client.patch(f"{url}mine/", typed, content_type=kind)
    assert answered.json()["metadata"] == {"correction": "Tarn"}


def test_what_the_author_says_stands_in_my_work(free, alice):
    free("ask_user")
    written(signed_in(alice), "ask_user")
    me = alice.annotator
    (row,) = build_example_rows(me, select_own_examples(me, build_status_conditions(me)))
    assert row.answer


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reply, type: text", "reply, type: multiclass, labels: [a, b]"),
        ("name: question", "name: correction"),
    ],
)
def test_corrections_need_a_free_answer_and_their_name(old, new):
    config, problems = check_config(config_text("ask_user").replace(old, new))
    assert config is None
    assert "validation.corrections" in [one.path for one in problems if one.severity == "error"]


def test_history_with_claims_and_corrections_comes_in(free, tmp_path):
    task = free("ask_user")
    votes = [{"worker": f"w{n}", "verdict": "incorrect", "correction": "Tarn"} for n in range(2)]
    row = {
        "task": "free", "round": 2, "uid": "u1", "context": {"passage": "The bus stops at Tarn."},
        "input": {"question": "Where?"}, "author": "a", "author_label": None,
        "model_prediction": {"model": "m", "label": SAID, "probs": None}, "model_wrong": True,
        "author_verdict": "incorrect", "validations": votes, "metadata": {},
    }  # fmt: skip
    file = tmp_path / "history.jsonl"
    file.write_text(json.dumps(row))
    call_command("import_examples", str(file), stdout=io.StringIO())
    example = Example.objects.get(uid="u1")
    assert (example.outcome, example.consensus.is_validated_error) == ("fooled", True)
    (line,) = lines(released(Round.objects.get(number=2), dev=0, test=0), "train")
    assert [one["answer"] for one in line["corrections"]] == ["Tarn", "Tarn"]
    task.round.task.config_text = config_text("string_f1")
    task.round.task.save()
    file.write_text(json.dumps(row | {"round": 3}))
    told = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_examples", str(file), stdout=io.StringIO(), stderr=told)
    assert "author_verdict" in told.getvalue()


def test_a_translation_task_of_dynabench_is_usable(alice, bob, settings, tmp_path):
    """Its YAML (FLORES) becomes a task: written, judged, released, and a model is scored."""
    settings.MEDIA_ROOT = tmp_path
    text = (DYNABENCH1 / "flores.yaml").read_text()
    task, notes = create_task(code="flores", config_text=text, actor=UserFactory())
    assert [note for note in notes if "sp_bleu" in note]
    round, _ = Round.objects.update_or_create(task=task, number=1, defaults={"state": "open"})
    ContextFactory(round=round, fields={"sourceLanguage": "German", "targetLanguage": "English"})
    scripted_target(round, output={"targetText": "The dog barks."})
    RoundPolicy.objects.create(round=round, policy=asdict(Policy(needed=1)))
    author = signed_in(alice)
    ok(author.get("/t/flores/write/"))
    form = {"attempt_key": KEY, "assignment": Assignment.objects.get().pk, "goal": ""}
    form |= {"sourceText": "Die Katze schläft.", "targetText": "The cat sleeps."}
    assert "The dog barks." in ok(author.post("/t/flores/write/", form, follow=True)).text
    example = Example.objects.get()
    ok(author.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"}, follow=True))
    page = ok(signed_in(bob).get("/t/flores/judge/"))
    assert "The dog barks." in page.text
    sent = {"example": example.uuid, "answer": "verdict:incorrect"}
    ok(signed_in(bob).post("/t/flores/judge/", sent, follow=True))
    Round.objects.update(state="closed")
    round.refresh_from_db()
    version = make_round_version(round)
    scores = {score.metric: score for score in evaluated(task, version, "The cat slept.")}
    for metric in ("chrf_pp", "bleu"):
        assert 0 < scores[metric].value < 1
    assert "sp_bleu" not in scores or scores["sp_bleu"].value is None
    (line,) = lines(released(round, dev=0, test=0), "train")
    assert line["label"] == "The cat sleeps."


def evaluated(task, version, answer):
    """The scores over all of a model that gives this answer to every example."""
    field = task.config.answer_field
    rows = [{"id": row.uid, "output": {field: answer}} for row in read_set_rows(version)]
    file = gzip.compress("\n".join(map(json.dumps, rows)).encode())
    model = accepted_model(task, name="other", kind="predictions")
    model.file.save("p.jsonl.gz", ContentFile(file))
    run = queued_run(model, version)
    evaluate_next(run.pk)
    return Score.objects.filter(run=run, slice="", kind="")


def test_free_answers_are_scored_with_intervals(free):
    """By each metric of texts; the others need labels, marks or an order."""
    task = free("ask_user").round.task
    task.config_text = config_text("ask_user").replace(
        "[exact_match,", "[wer, exact_match, chrf_pp,"
    )
    task.save()
    rows = [
        SetRow(f"u{n}", {"passage": "The bus.", "question": f"Where {n}?"}, (gold, "In Tarn"))
        for n, gold in enumerate(("Tarn", "the old mill") * 10)
    ]
    scores = evaluated(task, set_version(task, rows=rows), "Tarn.")
    assert {score.metric for score in scores} >= {"squad_f1", "exact_match", "chrf_pp", "rouge_l"}
    exact = scores.get(metric="exact_match")
    assert (exact.value, exact.n) == (0.5, 20)
    # A word of three is as near to "the old mill" as to "In Tarn", of which half is right.
    assert scores.get(metric="wer").value == pytest.approx(10 / 30)
    for score in scores:
        assert score.low is None or score.low <= score.value <= score.high
    assert all(score.low is not None for score in scores if score.metric != "bleu")


def test_boards_rank_by_the_fewest_errors(free, client):
    """The better their answers by the main metric, the more errors these models make."""
    task = free("ask_user").round.task
    also = "also: [wer]}\nleaderboard: {weights: {squad_f1: 1, wer: 9}}"
    task.config_text = re.sub(r"also: .*", also, config_text("ask_user"))
    task.save()
    version = set_version(task, access="scoring", rows=[SetRow("u", {}, ("Tarn",))] * 40)
    models = {}
    for name, f1, rate in (("many", 0.6, 1.3), ("some", 0.5, 0.5), ("few", 0.4, 0.1)):
        models[name] = accepted_model(task, name=name, is_published=True)
        run = queued_run(models[name], version, state="done", outcome="ok")
        for metric, value in (("squad_f1", f1), ("wer", rate)):
            Score.objects.create(run=run, metric=metric, value=value, low=value, high=value, n=40)
    renew_boards()
    tables = {}
    for mode, sort in itertools.product(("robust", "anchored"), ("", "wer")):
        tables[mode] = ok(client.get(f"{BOARD}?format=json&mode={mode}&sort={sort}")).json()
        assert [row["model"] for row in tables[mode]["rows"]] == ["few", "some", "many"]
    table = tables["anchored"]
    assert table["budgets"]["wer"] == 100
    directions = {metric["name"]: metric["higher_is_better"] for metric in table["metrics"]}
    assert directions == {
        "squad_f1": True, "wer": False, "throughput": True, "memory": False,
        "latency_p95": False, "memory_mean": False,
    }  # fmt: skip
    assert table["anchors"]["scales"]["wer"] == {"low": 100, "high": 0}
    points = {row["model"]: row["points"]["wer"] for row in table["rows"]}
    assert points["few"] > points["some"] > points["many"] == 0
    pair = f"?a={models['few'].pk}&b={models['many'].pk}"
    assert "130.0" in ok(client.get(f"{BOARD}compare/{pair}")).text
    assert round_number("wer", 1.3, 40)[0] == 1  # a sealed set tells no more than its steps
