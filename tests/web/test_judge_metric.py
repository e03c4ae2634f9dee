"""A language model as judge as a metric: shown with its agreement, counted only when calibrated."""

import csv

import pytest

from evaluation.contract import SetRow
from evaluation.judges.llm_judges.agreement import MIN_EXAMPLES, JudgedPair, compute_agreement
from evaluation.models import EvaluationRun, EvaluationSet, LlmJudge, LlmScore, Score
from leaderboard.board.rates import compute_pool_rates
from leaderboard.board.tables import build_public_table
from leaderboard.snapshots.diff import describe_changes
from leaderboard.snapshots.services import take_snapshot
from tasks.models import TargetModel
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory
from tests.support.writing import ok

CONFIG = """
version: 1
name: Free
goal: {text: Ask a question that the model answers wrongly}
context: [{name: passage, type: text, label: Passage}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1, also: [llm_judge], judge: careful}
leaderboard: {weights: {squad_f1: 1, llm_judge: 8}}
"""
BOARD = "/t/free/leaderboard/"
F1 = (0.4, 0.6, 0.8)
FOUND_CORRECT = (0.9, 0.6, 0.3)  # the other way round


@pytest.fixture
def task(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="free", name="Free", config_text=CONFIG)


@pytest.fixture
def runs(task):
    """Runs of three published models on a set with a weight."""
    rows = [SetRow(f"u{n}", {"passage": "p", "question": f"q{n}"}, ("yes",)) for n in range(400)]
    version = set_version(task, "round-1", rows=rows, access="scoring")
    found = []
    for number, value in enumerate(F1):
        model = accepted_model(task, name=f"Model {number}", is_published=True)
        run = queued_run(model, version, state="done", outcome="ok", runner="process")
        run.usage = {"examples_per_second": 9.0 - number, "peak_bytes": 2**30}
        run.save()
        Score.objects.create(
            run=run, metric="squad_f1", value=value, low=value - 0.01, high=value + 0.01, n=400
        )
        found.append(run)
    return found


def a_judge(task, name="careful", examples=3 * MIN_EXAMPLES):
    """A judge that agrees with people on nine of ten examples."""
    target, _ = TargetModel.objects.get_or_create(task=task, name="chat", adapter="openai_chat")
    found = compute_agreement(
        JudgedPair(n, n % 2 == 0, (n % 2 == 0) != (n % 10 == 0)) for n in range(examples)
    )
    return LlmJudge.objects.create(
        task=task, target=target, name=name, prompt="Judge.", most_calls=9, state="done",
        asked_with={}, report={"calibrate": found._asdict()},
    )  # fmt: skip


def scored(judge, runs):
    for run, value in zip(runs, FOUND_CORRECT, strict=True):
        LlmScore.objects.create(
            judge=judge, run=run, value=value, low=value - 0.01, high=value + 0.01, n=400
        )


def ranking(table):
    return [row["model"] for row in table["rows"]]


def column(table):
    return next(one for one in table["metrics"] if one["name"] == "llm_judge")


def test_a_judge_who_is_not_calibrated_is_shown_and_counts_for_nothing(task, runs, client):
    scored(a_judge(task, examples=MIN_EXAMPLES - 1), runs)
    table = ok(client.get(f"{BOARD}?format=json")).json()
    assert ranking(table) == ["Model 2", "Model 1", "Model 0"]
    assert "llm_judge" not in table["weights"]["metrics"]
    assert "llm_judge" not in compute_pool_rates(task).rates.values
    assert [row["metrics"]["llm_judge"]["value"] for row in table["rows"]] == [30.0, 60.0, 90.0]
    assert column(table)["judge"]["agreement"]["is_calibrated"] is False
    assert client.get(f"{BOARD}?w_llm_judge=8").status_code == 422
    sorted_by_it = ok(client.get(f"{BOARD}?sort=llm_judge")).text
    for page in (sorted_by_it, ok(client.get(_compared(runs))).text):
        assert "not calibrated" in page
        assert "data-kappa" not in page
    assert sorted_by_it.index(">Model 2<") < sorted_by_it.index(">Model 0<")
    assert "sort-llm_judge" not in sorted_by_it
    compared = ok(client.get(f"/api/v1/tasks/free/leaderboard/compare/{_query(runs)}")).json()
    (row,) = [one for one in compared["rows"] if one["metric"] == "llm_judge"]
    assert (row["a"]["value"], row["p"], row["better"]) == (90.0, None, "untested")
    assert compared["judge"] == column(table)["judge"]


def test_one_who_is_calibrated_counts_as_its_owner_says(task, runs, client):
    judge = a_judge(task)
    scored(judge, runs)
    assert ranking(ok(client.get(f"{BOARD}?format=json&mode=robust")).json()) == [
        "Model 0", "Model 1", "Model 2",
    ]  # fmt: skip
    table = ok(client.get(f"{BOARD}?format=json")).json()
    assert ranking(table) == ["Model 1", "Model 0", "Model 2"]  # in proportion to the main metric
    assert ranking(ok(client.get(f"{BOARD}?format=json&w_llm_judge=0")).json()) == [
        "Model 2", "Model 1", "Model 0",
    ]  # fmt: skip
    low = judge.report["calibrate"]["low"]
    assert column(table)["judge"]["agreement"]["low"] == pytest.approx(low, abs=1e-4)
    for page in (BOARD, _compared(runs), f"/m/{runs[0].submission_id}/"):
        assert f'data-kappa="{low:.2f}"' in ok(client.get(page)).text
    lines = ok(client.get(f"{BOARD}?format=csv")).text.splitlines()
    for line in csv.DictReader(lines):
        assert float(line["llm_judge_kappa_low"]) == pytest.approx(low, abs=1e-4)
        assert line["llm_judge_judge"] == "careful (1)"
        assert line["llm_judge_judged_by_both"] == str(3 * MIN_EXAMPLES)
    assert f"kappa at least {low:.2f}" in ok(client.get(f"{BOARD}?format=latex")).text
    told = ok(client.get("/api/v1/tasks/free/leaderboard/")).json()
    assert column(told) == column(table)
    results = ok(client.get(f"/api/v1/models/{runs[0].submission_id}/results/")).json()
    assert "llm_judge" not in results["scores"]["round-1"]  # nowhere without the agreement


def test_a_snapshot_keeps_the_judge_with_its_agreement(task, runs, client):
    judge = a_judge(task)
    scored(judge, runs)
    snapshot = take_snapshot(task=task, actor=None)
    kept = column(snapshot.table)
    assert (kept["version"], kept["judge"]["name"]) == (1, "careful")
    LlmJudge.objects.update(report={})
    low = judge.report["calibrate"]["low"]
    assert f'data-kappa="{low:.2f}"' in ok(client.get(f"{BOARD}snapshots/1/")).text


def test_another_judge_is_another_version_and_has_no_scores_yet(task, runs, client):
    first = a_judge(task)
    scored(first, runs)
    before = build_public_table(task)
    second = a_judge(task, "careful-2")
    assert (
        column(build_public_table(task))["version"] == 1
    )  # until the configuration names the other
    task.config_text = CONFIG.replace("judge: careful", "judge: careful-2")
    task.save()
    after = build_public_table(task)
    assert (column(after)["version"], column(after)["judge"]["name"]) == (2, "careful-2")
    assert {row["metrics"]["llm_judge"]["value"] for row in after["rows"]} == {None}
    assert any("llm_judge" in sentence for sentence in describe_changes(before, after))
    scored(second, runs)  # the board reads them though no run has ended since
    found = {row["metrics"]["llm_judge"]["value"] for row in build_public_table(task)["rows"]}
    assert 90.0 in found


def test_a_judge_that_nobody_has_made_yet_leaves_the_board_whole(task, runs, client):
    table = ok(client.get(f"{BOARD}?format=json")).json()
    assert ranking(table) == ["Model 2", "Model 1", "Model 0"]
    assert column(table)["version"] == 0
    assert 'data-judge="careful" data-number="0"' in ok(client.get(BOARD)).text
    for format in ("csv", "latex"):
        ok(client.get(f"{BOARD}?format={format}"))


def test_on_sealed_sets_it_is_rounded_as_other_scores(task, runs):
    judge = a_judge(task)
    for run in runs:
        LlmScore.objects.create(judge=judge, run=run, value=0.3123, low=0.3, high=0.4, n=400)
    EvaluationSet.objects.update(answers_public=False)
    EvaluationRun.objects.filter(pk__in=[run.pk for run in runs[:2]]).update(is_shown=True)
    EvaluationRun.objects.filter(pk=runs[2].pk).update(is_shown=False)
    shown = {row["model"]: row["metrics"]["llm_judge"] for row in build_public_table(task)["rows"]}
    assert shown["Model 0"]["value"] == shown["Model 1"]["value"] == 30.0  # of 40 steps
    assert shown["Model 2"]["value"] is None


def _query(runs):
    return f"?a={runs[0].submission_id}&b={runs[2].submission_id}"


def _compared(runs):
    return f"{BOARD}compare/{_query(runs)}"
