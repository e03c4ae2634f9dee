"""`dynabench verify` of every column: robustness, fairness, speed, memory, judges, own metrics."""

import gzip
import hashlib
import json

import numpy as np
import pytest
from django.core.files.base import ContentFile

from dynabench.client.client import DynabenchClient
from dynabench.client.commands import main
from dynabench.client.errors import NotFound
from evaluation.contract import SetRow
from evaluation.judges.llm_judges.selectors import read_answers_to_judge
from evaluation.models import (
    CustomMetric,
    CustomOutcome,
    Dataset,
    EvaluationRun,
    LlmJudge,
    LlmScore,
    LlmVerdict,
    Score,
)
from evaluation.scoring.bootstrap import compute_mean_number
from leaderboard.board.tables import compute_table_digest
from leaderboard.models import Snapshot
from leaderboard.snapshots.services import take_daily_snapshot, take_snapshot
from tasks.models import Round, TargetModel
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory
from tests.support.submissions import answered
from tests.support.whole_boards import nli_board, qa_board
from validation.rates.rates import compute_rate

pytestmark = pytest.mark.django_db(transaction=True)
DELTAS = {
    "robustness", "robustness_drop", "robustness_consistency",
    "fairness", "fairness_gap", "fairness_consistency",
}  # fmt: skip
COSTS = {"throughput", "latency_p95", "memory", "memory_mean"}
ANSWERS = ("yes", "yes, it is", None, "no")


@pytest.fixture(autouse=True)
def _own_files(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def verified(live_server, capsys, task, *more):
    """The exit code, and the report."""
    path = f"/t/{task}/leaderboard/snapshots/1/"
    code = main(["verify", f"{live_server.url}{path}", "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def columns_of(table):
    return {name for row in table["rows"] for name in row["sets"]["round-1"]}


def change_answers(run, before, after):
    text = gzip.decompress(run.predictions.read()).replace(before, after, 3)
    run.predictions.save("changed.jsonl.gz", ContentFile(gzip.compress(text)))


@pytest.mark.parametrize(("code", "make"), [("nli", nli_board), ("qa", qa_board)])
def test_every_cell_is_recomputed(code, make, live_server, monkeypatch, capsys):
    make(monkeypatch)
    table = Snapshot.objects.get().table
    exit_code, report = verified(live_server, capsys, code)
    cells = sum(len(row["sets"]["round-1"]) for row in table["rows"])
    assert (exit_code, report["cells"]) == (0, {"equal": cells})
    assert columns_of(table) >= COSTS | DELTAS
    # Intervals, too, are those of the site: the seed is that of each run.
    assert verified(live_server, capsys, code, "--intervals")[0] == 0


def test_what_was_changed_is_named_by_its_column(live_server, monkeypatch, capsys):
    nli_board(monkeypatch)
    runs = EvaluationRun.objects
    change_answers(runs.filter(suite="robustness").first(), b'"neutral"', b'"entailment"')
    measured = runs.filter(suite="plain").first()
    measured.measurements["timed_seconds"] *= 2
    measured.measurements["memory_peaks"][-1] *= 2
    measured.save()
    exit_code, report = verified(live_server, capsys, "nli")
    changed = {each["metric"] for each in report["differences"]}
    assert exit_code == 1
    assert changed - DELTAS == {"throughput", "memory"}
    assert "robustness_consistency" in changed
    assert not any(name.startswith("fairness") for name in changed)


def test_a_later_configuration_does_not_count(live_server, monkeypatch, capsys):
    version = nli_board(monkeypatch)
    task = version.evaluation_set.task
    task.config_text = task.config_text.replace("main: accuracy", "main: macro_f1")
    task.config_text = task.config_text.replace("also: [macro_f1]", "also: []")
    task.config_text = task.config_text.replace("{accuracy: 4,", "{macro_f1: 4,")
    task.save()
    assert verified(live_server, capsys, "nli")[0] == 0
    # Somebody who exchanges the kept configuration is found out.
    Snapshot.objects.update(config_text=task.config_text)
    exit_code, report = verified(live_server, capsys, "nli")
    assert exit_code == 1
    assert "configuration" in report["problems"][0]


def test_another_remark_in_the_configuration_is_no_other_board(monkeypatch):
    task = nli_board(monkeypatch).evaluation_set.task
    snapshot = Snapshot.objects.get()
    digest = hashlib.sha256(task.config_text.encode()).hexdigest()
    assert snapshot.table["config_sha256"] == digest
    task.config_text += "\n# A remark.\n"
    task.save()
    assert take_daily_snapshot(task=task, day=snapshot.made_at.date()) is None


def test_an_old_snapshot_says_of_each_column_what_it_lacks(live_server, monkeypatch, capsys):
    nli_board(monkeypatch)
    snapshot = Snapshot.objects.get()
    del snapshot.table["config_sha256"]
    snapshot.config_text, snapshot.sha256 = "", compute_table_digest(snapshot.table)
    snapshot.save()
    EvaluationRun.objects.update(measurements={})
    EvaluationRun.objects.filter(suite="fairness").update(predictions="")
    exit_code, report = verified(live_server, capsys, "nli")
    assert exit_code == 0
    assert report["cells"]["not checked"] == 2 * (len(COSTS) + 1)  # and fairness_consistency
    assert main(["verify", f"{live_server.url}/t/nli/leaderboard/snapshots/1/"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in (*COSTS, "fairness_consistency"))


def test_missing_answers_to_perturbed_examples_are_a_problem(live_server, capsys, monkeypatch):
    """A snapshot that keeps its configuration is of a server that gives them."""
    nli_board(monkeypatch, size=20)

    def find_none(*arguments):
        raise NotFound("There are none.")

    monkeypatch.setattr(DynabenchClient, "download_perturbed", find_none)
    code, report = verified(live_server, capsys, "nli")
    assert code == 1
    assert len(report["problems"]) == 1


FREE = """
version: 1
name: Free
goal: {text: Ask a question that the model answers wrongly}
context: [{name: passage, type: text, label: Passage}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1, also: [llm_judge, "custom:short"], judge: careful}
"""


@pytest.fixture
def judged_run(db):
    """A run whose answers a judge and a metric of the owners have scored, in a snapshot."""
    task = TaskFactory(code="free", name="Free", config_text=FREE)
    round = Round.objects.create(task=task, number=1, state="released")
    rows = [SetRow(f"{n}", {"passage": "p", "question": f"q{n}"}, ("yes",)) for n in range(40)]
    version = set_version(task, "round-1", rows=rows, may_leave=True)
    version.dataset = Dataset.objects.create(round=round, version=1, state="done", options={})
    version.save()
    model = accepted_model(task, name="first", is_published=True)
    run = queued_run(model, version, state="done", outcome="ok", runner="file")
    answered(run, *(ANSWERS[n % 4] for n in range(40)))
    EvaluationRun.objects.update(finished_at=run.queued_at)
    Score.objects.create(run=run, metric="squad_f1", value=0.375, low=None, high=None, n=40)
    target = TargetModel.objects.create(task=task, name="chat", adapter="openai_chat")
    judge = LlmJudge.objects.create(
        task=task, name="careful", target=target, most_calls=100, prompt="Judge.", asked_with={}
    )
    _judge(judge, run)
    metric = CustomMetric.objects.create(
        task=task, name="short", number=1, about="Short.", review="approved"
    )
    values = [0.1 * (n % 10) for n in range(40)]
    CustomOutcome.objects.create(
        metric=metric, run=run, values=np.array(values, dtype="<f4").tobytes()
    )
    number = compute_mean_number(values, name=metric.key)
    Score.objects.create(
        run=run, metric=metric.key, value=number.value, low=number.low, high=number.high, n=40
    )
    take_snapshot(task=task, actor=None)
    return run


def _judge(judge, run):
    found = []
    for number, answer in enumerate(read_answers_to_judge(judge, run)):
        found.append(bool(answer.questions) and number % 3 == 0)
        for question in answer.questions:
            LlmVerdict.objects.get_or_create(
                judge=judge, key=question.key, defaults={"is_correct": found[-1]}
            )
    rate = compute_rate(sum(found), len(found))
    LlmScore.objects.create(
        judge=judge, run=run, value=rate.value, low=rate.low, high=rate.high, n=rate.n
    )


def test_judges_and_own_metrics_are_recomputed(judged_run, live_server, capsys):
    exit_code, report = verified(live_server, capsys, "free")
    assert (exit_code, report["cells"]) == (0, {"equal": 3})
    LlmVerdict.objects.first().delete()
    outcome = CustomOutcome.objects.get()
    outcome.values = bytes(len(outcome.values))
    outcome.save()
    exit_code, report = verified(live_server, capsys, "free")
    assert report["cells"] == {"equal": 1, "differs": 1, "not checked": 1}
    assert [each["metric"] for each in report["differences"]] == ["custom:short"]


@pytest.mark.parametrize("secret", ["private_test", "hidden", "stays"])
def test_answers_to_perturbed_examples_leave_with_the_labels(secret, client, monkeypatch):
    version = nli_board(monkeypatch, size=20)
    address = "/api/v1/tasks/nli/leaderboard/snapshots/1/evidence/round-1/perturbed/"
    answer = client.get(address)
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    headers = [line for line in lines if "suite" in line]
    assert len(headers) == 4  # two models, two suites
    assert sum(header["examples"] for header in headers) == len(lines) - len(headers)
    # Neither texts nor right answers.
    assert {key for line in lines for key in line} == {
        "model", "suite", "seed", "examples", "id", "answers",
    }  # fmt: skip
    if secret == "private_test":
        Dataset.objects.update(options={"private_test": True})
    elif secret == "hidden":
        type(version.evaluation_set).objects.update(access="hidden")
    else:
        type(version.evaluation_set).objects.update(may_leave=False)
    assert client.get(address).status_code == 404
