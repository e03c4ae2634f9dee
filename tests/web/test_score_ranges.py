"""What was not measured is not zero: a score that depends on it is a range, at every door."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
import io

import pytest

from dynabench.client.commands.results import describe_results
from evaluation.models import EvaluationRun
from leaderboard.board.page import draw_part_bars
from leaderboard.board.services import store_first_models
from leaderboard.models import Snapshot
from leaderboard.snapshots.services import take_snapshot
from tests.support.board_pages import (
    URL,
    models,  # noqa: F401
    task,  # noqa: F401
)
from tests.support.boards import measured
from tests.support.evaluations import accepted_model

COSTS = ("throughput", "memory")


@pytest.fixture
def uploaded(task, models):
    """Predictions without speed, memory or robustness, a little better than Model 2."""
    file = accepted_model(task, kind="predictions", name="file", is_published=True)
    for one in task.evaluation_sets.all():
        measured(file, one.versions.get(), 0.68, speed=None, memory=None)
    runs = EvaluationRun.objects.filter(submission=file)
    runs.exclude(suite="plain").delete()
    runs.update(runner="file")
    return file


def row_of(rows, model):
    (row,) = (row for row in rows if row["id"] == str(model.pk))
    return row


def test_predictions_have_a_range_at_every_door(client, task, models, uploaded):
    table = client.get(f"{URL}?format=json").json()
    row, whole = row_of(table["rows"], uploaded), row_of(table["rows"], models[-1])
    score, sure = row["dynascore"], whole["dynascore"]
    assert score["low"] < score["least"] < sure["value"] < score["most"] < score["high"]
    assert (score["value"], sure["least"], sure["most"]) == (None, sure["value"], sure["value"])
    assert (row["first"], row["last"], row["rank"]) == (1, row["last"], f"1–{row['last']}")
    assert [name.partition(" ")[0] for name in row["missing"]] == [*COSTS, "robustness"]
    assert {*row["points"]} == {*whole["points"]} - {*COSTS, "robustness"}
    assert whole["rank"] == "1"
    ends = [f"{score[end]:.1f}" for end in ("least", "most")]
    words = f"{ends[0]} to {ends[1]}"
    for address in (URL, f"/m/{uploaded.pk}/", f"/t/{task.code}/", f"{URL}embed/"):
        page = client.get(address)
        assert words in page.text, address
        assert row["rank"] in page.text
    assert client.get(URL).text.count('class="chosen range"') == 1
    (line,) = (
        line
        for line in csv.DictReader(io.StringIO(client.get(f"{URL}?format=csv").text))
        if line["id"] == str(uploaded.pk)
    )
    assert (line["dynascore"], float(line["dynascore_least"])) == ("", score["least"])
    assert line["points_memory"] == ""
    assert f"{ends[0]}--{ends[1]} [" in client.get(f"{URL}?format=latex").text
    of_api = client.get(f"/api/v1/tasks/{task.code}/leaderboard/").json()
    assert row_of(of_api["rows"], uploaded)["dynascore"] == score
    results = client.get(f"/api/v1/models/{uploaded.pk}/results/").json()
    assert (results["dynascore"], results["rank"]) == (None, row["rank"])
    assert results["dynascore_least"] == pytest.approx(score["least"], abs=1e-3)
    assert results["dynascore_most"] == pytest.approx(score["most"], abs=1e-3)
    assert any(note.startswith("dynascore: ") for note in results["notes"])
    assert f"{score['least']:.2f} to {score['most']:.2f}" in describe_results(results)
    assert row["rank"] in client.get(f"/m/{uploaded.pk}/badge.svg").text


def test_a_snapshot_keeps_the_range_and_earlier_ones_stay_readable(client, task, models, uploaded):
    made = take_snapshot(task=task, actor=None)
    page = client.get(f"{URL}snapshots/{made.number}/")
    score = row_of(made.table["rows"], uploaded)["dynascore"]
    words = f"{score['least']:.1f} to {score['most']:.1f}"
    assert words in page.text
    store_first_models(task=task)
    (board,) = client.get("/leaderboards/").context["boards"]
    assert pytest.approx(score["least"], abs=1e-3) in [line.least for line in board.preview.lines]
    old = dict(made.table)
    for row in old["rows"]:
        row["dynascore"] = {name: row["dynascore"][name] for name in ("value", "low", "high")}
    Snapshot.objects.filter(pk=made.pk).update(table=old)
    assert client.get(f"{URL}snapshots/{made.number}/").status_code == 200
    assert words not in client.get(f"{URL}snapshots/{made.number}/").text
    for format in ("csv", "latex", "json"):
        assert client.get(f"{URL}snapshots/{made.number}/?format={format}").status_code == 200
    assert client.get("/leaderboards/").status_code == 200


def test_only_whole_scores_are_drawn_in_parts(client, models, uploaded):
    found = client.get(URL).context["parts"]
    assert found["shown"] == len(models)
    assert draw_part_bars([]) is None
