"""Metrics of a task's owners: proposed, tried, decided, and their numbers wherever others stand."""

import csv
from pathlib import Path

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluation.contract import BASE_IMAGE, SetRow
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.jobs import run_custom_metric, sweep_all
from evaluation.judges.custom_metrics.running import MAX_EXAMPLES
from evaluation.judges.custom_metrics.services import request_custom_scores
from evaluation.models import CustomMetric, CustomOutcome, EvaluationSet, Score
from evaluation.runs import carriers
from evaluation.runs.ray_runner import RayRunner
from leaderboard.board.tables import build_public_table
from leaderboard.jobs import renew_boards
from leaderboard.models import Resample
from leaderboard.snapshots.diff import describe_changes
from leaderboard.snapshots.services import take_snapshot
from tasks.models import Round, TaskMember
from tests.support.custom_metrics import InProcess
from tests.support.evaluations import accepted_model, set_version, without_deltas
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.submissions import answered, scored
from tests.support.writing import ok, signed_in

PAGE, BOARD = "/own/nli/metrics/", "/t/nli/leaderboard/"
GOLD = ["entailment", "neutral", "contradiction", "neutral"] * 25
SAFE = """
def score(gold, answer, example):
    # Not to take one extreme for the other.
    return 1 if answer == "neutral" or answer in gold else 0
"""
SLIPS = SAFE.replace("1 if", "0 if").replace("else 0", "else 1")


@pytest.fixture
def task(db, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(carriers, "choose_runner", lambda model, key: InProcess())
    task = RoundFactory(task=TaskFactory(code="nli")).task
    without_deltas(task)
    return task


@pytest.fixture
def owner(task):
    owner = UserFactory(email="owner@example.com")
    TaskMember.objects.create(task=task, user=owner, role="owner")
    return owner


@pytest.fixture
def boss(db):
    return UserFactory(email="boss@example.com", is_superuser=True)


@pytest.fixture
def runs(task):
    """Runs of three published models: always neutral, nearly right, and one that misses answers."""
    rows = [
        SetRow(f"u{n}", {"premise": f"Secret premise {n}.", "hypothesis": "So."}, (gold,))
        for n, gold in enumerate(GOLD)
    ]
    version = set_version(task, "mine", rows=rows, access="scoring")
    answers = (
        ["neutral"] * 100,
        ["contradiction", *GOLD[1:]],
        [None if n % 4 == 0 else gold for n, gold in enumerate(GOLD)],
    )
    return [_run(task, version, f"Model {n}", said) for n, said in enumerate(answers)]


def _run(task, version, name, said):
    model = accepted_model(task, UserFactory(), name=name, is_published=True)
    run = scored(model, version, accuracy=sum(map(str.__eq__, map(str, said), GOLD)) / len(GOLD))
    answered(run, *said)
    return run


def proposed(client, source=SAFE, **fields):
    """A version that was proposed on the page and tried."""
    about = {"name": "safe", "about": "No extreme for the other.", "higher_is_better": "yes"}
    response = client.post(PAGE, about | {"source": source} | fields)
    assert response.status_code == 302, response.text
    made = CustomMetric.objects.latest("queued_at")
    assert response.url == f"/t/nli/metrics/{made.name}/v{made.number}/"
    run_custom_metric(made.pk)
    made.refresh_from_db()
    return made


def page_of(metric):
    return f"/t/nli/metrics/{metric.name}/v{metric.number}/"


def approved(metric, boss):
    response = signed_in(boss).post(page_of(metric), {"approve": "yes"})
    assert response.status_code == 302, response.text
    run_custom_metric(metric.pk)
    metric.refresh_from_db()
    assert (metric.review, metric.state) == ("approved", "done")
    return metric


def named(task, weight, name="safe"):
    """Have the configuration name the metric, with a weight."""
    text = task.config_text.replace("also: [macro_f1]", f"also: ['custom:{name}']")
    task.config_text = text.replace("weights: {", f"weights: {{'custom:{name}': {weight}, ")
    task.save(update_fields=["config_text"])
    assert task.config.metrics.custom_names == (f"custom:{name}",)


def values(table, name="custom:safe"):
    return {row["model"]: row["metrics"][name]["value"] for row in table["rows"]}


def test_from_the_owners_file_to_every_place_of_a_number(
    task, owner, boss, runs, client, django_capture_on_commit_callbacks
):
    mine = signed_in(owner)
    with django_capture_on_commit_callbacks(execute=True):
        metric = proposed(mine)
    assert (metric.review, metric.state, metric.trial["failure"]) == ("proposed", "done", "")
    assert [row["value"] for row in metric.trial["shown"][:4]] == [1, 0, 1, 0]
    assert "to review" in mail.outbox[-1].subject
    assert mail.outbox[-1].to == ["boss@example.com"]
    assert not Score.objects.filter(metric__startswith="custom:").exists()
    assert page_of(metric) in ok(signed_in(boss).get("/metrics/")).text
    assert client.get(page_of(metric)).status_code == 404  # nobody's before its approval
    assert client.get("/api/v1/tasks/nli/metrics/").json()["results"] == []

    named(task, 4)
    assert "custom:safe" not in build_public_table(task)["weights"]["metrics"]  # none is approved
    ok(client.get(BOARD))
    with django_capture_on_commit_callbacks(execute=True):
        approved(metric, boss)
    assert mail.outbox[-1].to == ["owner@example.com"]
    scores = {score.run_id: score for score in Score.objects.filter(metric="custom:safe:1")}
    assert [scores[run.pk].value for run in runs] == [1.0, 0.99, 0.75]
    one = scores[runs[2].pk]
    assert (one.metric_version, one.n) == (1, 100)
    assert 0.6 < one.low < 0.75 < one.high < 0.9

    renew_boards()
    assert Resample.objects.filter(metric="custom:safe:1").count() == 3
    table = ok(client.get(f"{BOARD}?format=json")).json()
    assert values(table) == {"Model 0": 100.0, "Model 1": 99.0, "Model 2": 75.0}
    assert table["weights"]["metrics"]["custom:safe"] == 4
    (column,) = [one for one in table["metrics"] if one["name"] == "custom:safe"]
    assert (column["version"], column["higher_is_better"]) == (1, True)
    assert ok(client.get("/api/v1/tasks/nli/leaderboard/")).json()["metrics"] == table["metrics"]
    (line, *_) = csv.DictReader(ok(client.get(f"{BOARD}?format=csv")).text.splitlines())
    assert line["custom:safe_version"] == "1"
    assert "custom:safe (\\%; version 1)" in ok(client.get(f"{BOARD}?format=latex")).text
    for page in (BOARD, f"{BOARD}?sort=custom:safe", f"/m/{runs[0].submission_id}/"):
        assert page_of(metric) in ok(client.get(page)).text
    told = ok(client.get(f"/api/v1/models/{runs[2].submission_id}/scores/")).json()
    assert {"custom:safe:1"} <= {row["metric"] for row in told["results"]}
    found = ok(client.get("/api/v1/tasks/nli/metrics/")).json()["results"]
    assert [(row["metric"], row["source"]) for row in found] == [("custom:safe:1", metric.source)]
    assert "Secret premise" not in ok(client.get(page_of(metric))).text
    take_snapshot(task=task, actor=None)
    assert "version 1" in ok(client.get(f"{BOARD}snapshots/1/")).text
    query = f"?a={runs[0].submission_id}&b={runs[2].submission_id}"
    (row,) = [
        row
        for row in ok(client.get(f"/api/v1/tasks/nli/leaderboard/compare/{query}")).json()["rows"]
        if row["metric"] == "custom:safe"
    ]
    assert (row["better"], row["difference"]["value"]) == ("a", 25.0)


def test_less_may_be_better_and_a_missing_answer_is_the_worst(task, owner, boss, runs, client):
    metric = proposed(signed_in(owner), SLIPS, name="slips", higher_is_better="no")
    named(task, 100, "slips")
    approved(metric, boss)
    renew_boards()
    for mode in ("anchored", "robust"):
        table = ok(client.get(f"{BOARD}?format=json&mode={mode}")).json()
        assert values(table, "custom:slips") == {"Model 0": 0, "Model 1": 1.0, "Model 2": 25.0}
    table = ok(client.get(f"{BOARD}?format=json&mode=anchored")).json()
    assert table["anchors"]["scales"]["custom:slips"] == {"low": 100.0, "high": 0.0}
    points = {row["model"]: row["points"]["custom:slips"] for row in table["rows"]}
    assert points["Model 1"] > points["Model 2"] > 0
    page = ok(client.get(f"{BOARD}?sort=custom:slips")).text
    assert page.index(">Model 0<") < page.index(">Model 1<") < page.index(">Model 2<")
    query = f"?a={runs[0].submission_id}&b={runs[2].submission_id}"
    rows = ok(client.get(f"/api/v1/tasks/nli/leaderboard/compare/{query}")).json()["rows"]
    assert [row["better"] for row in rows if row["metric"] == "custom:slips"] == ["a"]


def test_another_version_is_reviewed_again_and_the_old_numbers_stay(
    task, owner, boss, runs, client
):
    mine = signed_in(owner)
    first = approved(proposed(mine), boss)
    named(task, 1)
    before = build_public_table(task)
    assert mine.post(PAGE, _fields(SAFE)).status_code == 422  # nothing new
    second = proposed(mine, "def score(gold, answer, example):\n    return 0.5\n")
    assert second.number == 2
    assert values(build_public_table(task)) == values(before)
    page = ok(signed_in(boss).get(page_of(second))).text
    assert "return 0.5</ins>" in page
    approved(second, boss)
    first.refresh_from_db()
    assert first.review == "retired"
    assert values(build_public_table(task)) == {"Model 0": 50, "Model 1": 50, "Model 2": 37.5}
    assert Score.objects.filter(metric="custom:safe:1").count() == 3
    assert "custom:safe is computed differently: version 2, was 1." in describe_changes(
        before, build_public_table(task)
    )
    ok(client.get(page_of(first)))  # what its numbers rest on stays readable
    ok(mine.post(f"{PAGE}safe/v2/retire/", follow=True))
    assert set(values(build_public_table(task)).values()) == {None}


def _fields(source, **fields):
    about = {"name": "safe", "about": "No extreme for the other.", "higher_is_better": "yes"}
    return about | {"source": source} | fields


def test_a_proposal_in_place_of_another_retires_it(task, owner, runs):
    mine = signed_in(owner)
    first = proposed(mine)
    proposed(mine, SAFE + "# Once more.\n")
    first.refresh_from_db()
    assert (first.review, first.decided_at) == ("retired", None)


def test_answers_to_come_are_scored_by_the_sweep_and_none_twice(task, owner, boss, runs):
    metric = approved(proposed(signed_in(owner)), boss)
    assert request_custom_scores() == 0
    new = _run(task, runs[0].version, "Model 3", GOLD)
    sweep_all()
    metric.refresh_from_db()
    assert metric.state == "queued"
    run_custom_metric(metric.pk)
    assert new.scores.get(metric="custom:safe:1").value == 1
    assert CustomOutcome.objects.count() == 4


FAILS = "def score(gold, answer, example):\n    raise ValueError(example['premise'])\n"


def test_a_file_that_fails_is_never_approved_and_stores_nothing(task, owner, boss, runs):
    mine = signed_in(owner)
    metric = proposed(mine, FAILS)
    assert metric.trial["failure"] == "error"
    assert (metric.trial["line"], "premise" in metric.trial["detail"]) == (2, True)
    assert "Line 2" in ok(mine.get(page_of(metric))).text
    assert signed_in(boss).post(page_of(metric), {"approve": "yes"}).status_code == 422
    assert signed_in(boss).post(page_of(metric), {"approve": "no"}).status_code == 422  # no reason
    assert signed_in(boss).post(page_of(metric), {"approve": "no", "reason": "It fails."}).url
    metric.refresh_from_db()
    assert (metric.review, metric.reason) == ("refused", "It fails.")
    assert "It fails." in ok(mine.get(PAGE)).text
    assert signed_in(boss).post(page_of(metric), {"approve": "yes"}).status_code == 422
    CustomMetric.objects.update(review="approved", state="queued")
    run_custom_metric(metric.pk)
    assert {(one.failure, one.line) for one in CustomOutcome.objects.all()} == {("error", 2)}
    assert not Score.objects.filter(metric__startswith="custom:").exists()
    page = ok(mine.get(page_of(metric))).text
    assert "Line 2" in page
    EvaluationSet.objects.update(answers_public=False)
    assert mine.post(f"{PAGE}safe/v1/again/").status_code == 302
    assert not CustomOutcome.objects.exists()


def test_on_sealed_sets_the_board_alone_shows_it_rounded(task, owner, boss, runs, client):
    EvaluationSet.objects.update(answers_public=False)
    named(task, 1)
    approved(proposed(signed_in(owner)), boss)
    renew_boards()
    assert values(build_public_table(task))["Model 1"] == 100.0  # 99 of 100, of 20 steps
    for one, is_there in ((client, False), (signed_in(owner), True)):
        told = ok(one.get(f"/api/v1/models/{runs[2].submission_id}/scores/")).json()
        assert ("custom:safe:1" in {row["metric"] for row in told["results"]}) is is_there


def test_on_sealed_sets_a_trial_shows_no_example(task, owner, runs):
    EvaluationSet.objects.update(answers_public=False)
    metric = proposed(signed_in(owner))
    assert (metric.trial["examples"], metric.trial["shown"]) == (50, [])
    failed = proposed(signed_in(owner), FAILS, name="fails")
    assert (failed.trial["failure"], failed.trial["detail"]) == ("error", "")


def test_a_trial_shows_no_example_of_a_round_that_is_not_released(task, owner, runs):
    """Whatever its owners say of the set: people may still judge its examples."""
    round = task.rounds.get()
    EvaluationSet.objects.update(source="round", round=round)
    for state, is_shown in (("closed", False), ("released", True)):
        Round.objects.filter(pk=round.pk).update(state=state)
        metric = proposed(signed_in(owner), name=f"m-{state}")
        assert bool(metric.trial["shown"]) is is_shown


def test_without_a_set_the_examples_of_the_task_are_tried(task, owner):
    metric = proposed(signed_in(owner))
    assert metric.trial["failure"] == ""
    assert metric.trial["examples"] > 0


def test_without_an_engine_it_waits(task, owner, runs, monkeypatch):
    def none(model, key):
        raise NoEngine("It waits.")

    monkeypatch.setattr(carriers, "choose_runner", none)
    metric = proposed(signed_in(owner))
    assert (metric.state, metric.message, metric.trial) == ("queued", "It waits.", {})


def test_a_node_of_the_cluster_runs_it_in_one_shard(task, owner, runs, settings, monkeypatch):
    asked = []

    def run(runner, model, inputs, limits, *, take, beat):
        asked.append((runner.address, runner.shard_size, model.image))
        return InProcess().run(model, inputs, limits, take=take, beat=beat)

    monkeypatch.setattr(RayRunner, "run", run)
    settings.RAY_ADDRESS = "10.0.0.2:6379"
    assert proposed(signed_in(owner)).trial["failure"] == ""
    assert asked == [("10.0.0.2:6379", MAX_EXAMPLES, BASE_IMAGE)] * 2


def test_stored_answers_that_are_gone_are_told(task, owner, boss, runs):
    Path(runs[0].predictions.path).unlink()
    metric = approved(proposed(signed_in(owner)), boss)
    assert metric.outcomes.get(run=runs[0]).failure == "gone"
    assert metric.outcomes.filter(failure="").count() == 2


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "Not So"}, "name"),
        ({"about": ""}, "about"),
        ({"source": "  "}, "source"),
        ({"source": "#" * 20_001}, "source"),
        ({"file": SimpleUploadedFile("m.py", b"\xff\xfe")}, "file"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_stays(task, owner, fields, field):
    response = signed_in(owner).post(PAGE, _fields(SAFE) | fields)
    assert response.status_code == 422
    assert field in response.context["form"].errors
    assert not CustomMetric.objects.exists()


def test_query_counts_do_not_grow(task, owner, boss, runs, client):
    mine = signed_in(owner)
    counts = []
    for number in range(2):
        approved(proposed(mine, name=f"safe-{number}"), boss)
        named(task, 1, f"safe-{number}")
        found = []
        for one, address in ((mine, PAGE), (client, BOARD), (client, f"{BOARD}?format=json")):
            one.get(address)  # once for what a process reads first
            with CaptureQueriesContext(connection) as queries:
                ok(one.get(address))
            found.append(len(queries))
        counts.append(found)
        text = task.config_text.replace(f"weights: {{'custom:safe-{number}': 1, ", "weights: {")
        task.config_text = text.replace(f"['custom:safe-{number}']", "[macro_f1]")
    assert counts[0] == counts[1]


def test_a_file_may_be_chosen(task, owner, runs):
    file = SimpleUploadedFile("m.py", SAFE.replace("\n", "\r\n").encode())
    assert proposed(signed_in(owner), source="", file=file).source == SAFE.lstrip("\n")


def test_the_doors(task, owner, boss, runs, client):
    metric = proposed(signed_in(owner))
    stranger = signed_in(UserFactory())
    for one in (client, stranger):
        for address in (PAGE, page_of(metric), "/metrics/"):
            assert one.get(address).status_code in (302, 404)
        for address in (PAGE, page_of(metric), f"{PAGE}safe/v1/again/", f"{PAGE}safe/v1/retire/"):
            assert one.post(address, _fields("x") | {"approve": "yes"}).status_code in (302, 404)
    assert signed_in(owner).get("/metrics/").status_code == 404
    assert signed_in(owner).post(page_of(metric), {"approve": "yes"}).status_code == 404
    metric.refresh_from_db()
    assert (metric.review, CustomMetric.objects.count()) == ("proposed", 1)
