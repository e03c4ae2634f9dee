"""Forks, frozen rates and snapshots of boards."""

import datetime as dt
import json
import tomllib

import pytest
from django.conf import settings
from django.utils import timezone

from core.accounts.models import LogEntry
from core.errors import Refused
from evaluation.models import EvaluationRun, EvaluationSet, Score
from leaderboard.board.forks.services import delete_weights, save_weights
from leaderboard.board.matrix import read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.ranked import rank_board
from leaderboard.board.services import freeze_rates, record_renewal
from leaderboard.board.tables import build_public_table, compute_table_digest, encode_canonically
from leaderboard.jobs import renew_boards
from leaderboard.models import Board, Snapshot, Weights
from leaderboard.ranking.weights import Weighting, WeightsError, restore_saved_weights
from leaderboard.snapshots.diff import describe_changes
from leaderboard.snapshots.services import refreeze_rates, take_daily_snapshot, take_snapshot
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory

SPEED = Weighting({"throughput": 4.0, "accuracy": 1.0}, {"round-1": 8.0, "round-2": 0.0})
DAY = dt.date(2026, 1, 5)


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def test_weights_are_saved_and_replaced_by_their_owner(task, alice, bob):
    save_weights(task=task, owner=alice, name="speed-first", weighting=SPEED, description="Fast.")
    slow = Weighting({"throughput": 0.0, "accuracy": 8.0}, {"round-1": 1.0})
    made = save_weights(task=task, owner=alice, name="speed-first", weighting=slow)
    assert (made.metrics, made.evaluation_sets) == (slow.metrics, slow.sets)
    assert made.description == ""
    assert Weights.objects.count() == 1
    with pytest.raises(Refused) as refused:
        save_weights(task=task, owner=bob, name="speed-first", weighting=SPEED)
    assert refused.value.field == "name"
    save_weights(task=TaskFactory(code="qa"), owner=bob, name="speed-first", weighting=SPEED)
    fill_board(task)
    start = choose_opening_weights(task, read_matrix(task))
    assert (
        restore_saved_weights(made.metrics, made.evaluation_sets, start).metrics["throughput"]
        == 0.0
    )


@pytest.mark.parametrize("name", ["", "7", "12-3", "Speed", "a--b", "-a", "a b", "ü", "a" * 61])
def test_names_that_addresses_cannot_have_are_refused(task, alice, name):
    with pytest.raises(Refused) as refused:
        save_weights(task=task, owner=alice, name=name, weighting=SPEED)
    assert refused.value.field == "name"
    assert not Weights.objects.exists()


def test_weights_that_weigh_nothing_are_not_saved(task, alice):
    with pytest.raises(WeightsError):
        save_weights(
            task=task, owner=alice, name="none", weighting=Weighting({"accuracy": 0.0}, {})
        )


def test_weights_are_deleted_and_that_is_logged(task, alice):
    made = save_weights(task=task, owner=alice, name="speed", weighting=SPEED)
    delete_weights(weights=made, actor=alice)
    assert not Weights.objects.exists()
    assert LogEntry.objects.get().action == "weights.deleted"


def test_rates_are_frozen_with_three_models_and_kept(task):
    fill_board(task, models=2)
    renew_boards()
    assert Board.objects.get().rates == {}
    with pytest.raises(Refused, match=r"3 .* 2"):
        freeze_rates(task=task)
    fill_board(task, models=3, first=2)
    renew_boards()
    board = Board.objects.get()
    assert board.rates["accuracy"] == 1.0
    assert board.rates["throughput"] > 0
    assert set(board.pool) <= {"Model 0", "Model 1", "Model 2"}
    assert board.frozen_at is not None
    assert LogEntry.objects.filter(action="board.frozen").count() == 1
    before = {row["id"]: row["dynascore"]["value"] for row in build_public_table(task)["rows"]}
    fill_board(task, models=9, first=3)
    renew_boards()
    assert Board.objects.get().rates == board.rates
    after = {row["id"]: row["dynascore"]["value"] for row in build_public_table(task)["rows"]}
    assert {key: after[key] for key in before} == before
    assert freeze_rates(task=task) is None


def test_unpublished_models_are_in_no_pool(task):
    fill_board(task, models=4)
    task.submissions.filter(name__in=["Model 2", "Model 3"]).update(is_published=False)
    renew_boards()
    assert Board.objects.get().rates == {}


def test_rates_wait_for_metrics_that_are_under_way(task):
    models = fill_board(task)
    EvaluationRun.objects.filter(suite="robustness").delete()
    waiting = queued_run(models[0], EvaluationSet.objects.first().versions.get(), "robustness")
    renew_boards()
    assert Board.objects.get().rates == {}
    waiting.delete()
    renew_boards()
    assert Board.objects.get().rates["robustness"] is None
    assert Board.objects.get().rates["fairness"] > 0


def test_models_that_show_no_price_freeze_nothing(task):
    version = set_version(task, "round-1")
    for number in range(3):
        measured(accepted_model(task, name=str(number), is_published=True), version, 0.5)
    with pytest.raises(Refused):
        freeze_rates(task=task)
    renew_boards()
    assert Board.objects.get().rates == {}


def test_freezing_anew_is_logged_and_makes_a_snapshot(task, alice):
    fill_board(task)
    renew_boards()
    first = take_snapshot(task=task, actor=alice, mode="robust")
    fill_board(task, models=9, first=3)
    second = refreeze_rates(task=task, actor=alice)
    assert second.number == first.number + 1
    assert first.table["rates"] != second.table["rates"] == Board.objects.get().rates
    entry = LogEntry.objects.filter(action="board.frozen").latest("pk")
    assert (entry.actor, entry.data["rates"]) == (alice, second.table["rates"])
    assert any("exchange rates" in told for told in describe_changes(first.table, second.table))


def test_a_snapshot_holds_all_that_is_shown(task, alice):
    fill_board(task)
    freeze_rates(task=task)
    snapshot = take_snapshot(
        task=task, actor=alice, weighting=SPEED, title="For a paper", description="Fast ones."
    )
    snapshot.refresh_from_db()
    matrix = read_matrix(task)
    table, board = snapshot.table, rank_board(matrix, SPEED)
    assert (snapshot.number, snapshot.title, snapshot.made_by) == (1, "For a paper", alice)
    assert table["weights"] == {"metrics": SPEED.metrics, "sets": SPEED.sets}
    assert [row["model"] for row in table["rows"]] == [row.model.name for row in board.rows]
    for row, shown in zip(table["rows"], board.rows, strict=True):
        assert row["dynascore"]["value"] == pytest.approx(shown.dynascore.value, abs=1e-4)
        assert row["rank"] == shown.rank
        assert row["sets"]["round-1"]["accuracy"]["value"] is not None
    assert [(one["name"], one["version"], len(one["sha256"])) for one in table["sets"]] == [
        ("round-1", 1, 64), ("round-2", 1, 64),
    ]  # fmt: skip
    assert (table["mode"], set(table["rates"].values())) == ("anchored", {None})
    assert table["anchors"]["scales"].keys() == set(matrix.weighable_metrics)
    assert {one["name"] for one in table["metrics"]} == set(matrix.metrics)
    assert table["pool"] == list(matrix.pool.rows)
    assert table["metrics"][0] == {"name": "accuracy", "version": 2, "higher_is_better": True}
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert table["code"].startswith(f"{project['version']} (")
    assert table["date"] == timezone.now().date().isoformat()
    # The digest can be checked by whoever has the table, also after the database.
    assert (
        snapshot.sha256
        == compute_table_digest(table)
        == compute_table_digest(json.loads(encode_canonically(table)))
    )
    assert LogEntry.objects.filter(action="snapshot.taken", actor=alice).count() == 1


def test_a_digest_outlives_the_database(task, alice):
    models = fill_board(task)
    Score.objects.filter(run__submission=models[0]).update(value=-1e-9, low=-1e-9, high=1e-9)
    snapshot = take_snapshot(task=task, actor=alice)
    snapshot.refresh_from_db()
    assert "-0.0" not in str(snapshot.table)
    assert snapshot.sha256 == compute_table_digest(snapshot.table)


def test_nothing_scored_makes_no_snapshot(task, alice):
    set_version(task, "round-1")
    accepted_model(task, is_published=True)
    with pytest.raises(Refused):
        take_snapshot(task=task, actor=alice)
    assert not Snapshot.objects.exists()


def test_snapshots_have_no_private_models(task, alice):
    fill_board(task)
    version = EvaluationSet.objects.first().versions.get()
    tomorrow = timezone.now().date() + dt.timedelta(days=1)
    masked = accepted_model(task, alice, name="secret", is_published=True, anonymous_until=tomorrow)
    for model in (masked, accepted_model(task, alice, name="draft")):
        measured(model, version, 0.9)
    told = str(take_snapshot(task=task, actor=alice).table)
    assert "secret" not in told
    assert "draft" not in told
    assert alice.annotator.pseudonym not in told


def test_a_day_with_changes_leaves_a_snapshot(task, monkeypatch):
    models = fill_board(task)
    Board.objects.create(task=task)
    assert take_daily_snapshot(task=task, day=DAY).number == 1
    fill_board(task, models=4, first=3)
    assert take_daily_snapshot(task=task, day=DAY) is None  # once a day
    assert take_daily_snapshot(task=task, day=DAY + dt.timedelta(1)).number == 2
    assert take_daily_snapshot(task=task, day=DAY + dt.timedelta(2)) is None  # nothing changed
    task.submissions.filter(pk=models[0].pk).update(withdrawn_at=timezone.now())
    last = take_daily_snapshot(task=task, day=DAY + dt.timedelta(3))
    assert last.number == 3
    assert last.made_by is None
    gone = describe_changes(Snapshot.objects.get(number=2).table, last.table)
    assert any(told.startswith("Model 0 ") for told in gone)


def test_a_boards_first_score_makes_its_first_snapshot_on_the_same_day(
    task, django_assert_num_queries
):
    set_version(task, "round-1")
    Board.objects.create(task=task)
    with django_assert_num_queries(1):  # it is asked each minute
        assert take_daily_snapshot(task=task, day=DAY) is None
    fill_board(task)
    assert take_daily_snapshot(task=task, day=DAY).number == 1


def test_renewing_takes_the_days_snapshot(task):
    fill_board(task)
    renew_boards()
    renew_boards()
    assert [snapshot.number for snapshot in Snapshot.objects.all()] == [1]


def test_renewed_only_goes_forward(task):
    late, early = (dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (2, 1))
    record_renewal(task=task, renewed_to=late)
    record_renewal(task=task, renewed_to=early)
    assert Board.objects.get().renewed_to == late
