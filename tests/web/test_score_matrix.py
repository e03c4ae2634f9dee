"""Who sees which models and numbers of a board, and what asking for them costs."""

import datetime as dt

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from evaluation.models import EvaluationRun, Score
from evaluation.runs.services import ensure_target_submissions
from evaluation.submissions.selectors import find_public_models
from leaderboard.board.matrix import read_matrix
from leaderboard.board.opening import choose_opening_weights
from leaderboard.board.ranked import rank_board
from leaderboard.board.rates import may_freeze_rates
from leaderboard.board.services import freeze_rates
from leaderboard.board.tables import build_public_table
from leaderboard.models import Board, Resample
from tasks.models import RoundTarget, TargetModel, TaskMember
from tests.support.boards import fill_board, measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory, TaskFactory, UserFactory

DAY = dt.timedelta(days=1)


def at(second):
    """A time to hand a model in; those of one transaction would all be the same."""
    return dt.datetime(2026, 1, 1, 12, 0, second, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def people(task, alice, bob):
    """By role: who hands models in, somebody else, and two members of the task."""
    editor, reviewer = UserFactory(), UserFactory()
    TaskMember.objects.create(task=task, user=editor, role=TaskMember.Role.EDITOR)
    TaskMember.objects.create(task=task, user=reviewer, role=TaskMember.Role.REVIEWER)
    admin = UserFactory(is_superuser=True)
    return {
        "public": None, "visitor": AnonymousUser(), "alice": alice, "bob": bob, "editor": editor,
        "reviewer": reviewer, "admin": admin,
    }  # fmt: skip


@pytest.fixture
def board(task, alice):
    """A model of each kind of visibility, by alice, measured on a counting set."""
    version = set_version(task, "round-1")
    tomorrow, yesterday = timezone.now().date() + DAY, timezone.now().date() - DAY
    kinds = {
        "known": {"is_published": True},
        "revealed": {"is_published": True, "anonymous_until": yesterday},
        "masked": {"is_published": True, "anonymous_until": tomorrow},
        "draft": {},
        "masked draft": {"anonymous_until": tomorrow},
        "withdrawn": {"is_published": True, "withdrawn_at": timezone.now()},
    }
    for number, (name, fields) in enumerate(kinds.items()):
        model = accepted_model(task, alice, name=name, queued_at=at(number), **fields)
        measured(model, version, 0.6)
    refused = accepted_model(task, alice, name="refused", is_published=True)
    type(refused).objects.filter(pk=refused.pk).update(state="failed")
    return version


PUBLIC = ["known", "revealed", "Anonymous 2"]
ALL = ["known", "revealed", "masked", "draft", "masked draft"]


@pytest.mark.parametrize(
    ("role", "names"),
    {
        "public": PUBLIC, "visitor": PUBLIC, "bob": PUBLIC, "reviewer": PUBLIC,
        "alice": ALL, "editor": ALL, "admin": ALL,
    }.items(),
)  # fmt: skip
def test_who_sees_which_models(task, people, board, role, names):
    found = read_matrix(task, people[role]).models
    assert [model.name for model in found] == names
    pseudonym = people["alice"].annotator.pseudonym
    assert [model.owner for model in found] == [
        "" if name.startswith("Anonymous") else pseudonym for name in names
    ]
    assert "masked" in names or "masked" not in str(found)


def test_a_target_is_on_the_public_board_once_people_met_it_and_it_works(task, people):
    version = set_version(task, "round-1", may_leave=True)
    targets = {
        name: TargetModel.objects.create(task=task, name=name, url="http://127.0.0.1:9")
        for name in ("unused", "planned", "broken", "met")
    }
    for number, (state, names) in enumerate(
        (("closed", ["broken", "met"]), ("draft", ["planned"])), 1
    ):
        of_state = RoundFactory(task=task, number=number, state=state)
        for position, name in enumerate(names):
            RoundTarget.objects.create(round=of_state, target=targets[name], position=position)
    for entered in ensure_target_submissions(task):
        if entered.name != "broken":
            measured(entered, version, 0.5)
    assert [model.name for model in read_matrix(task).models] == ["met"]
    assert [model.name for model in read_matrix(task, people["alice"]).models] == ["met"]
    seen = {model.name: model.is_published for model in read_matrix(task, people["editor"]).models}
    assert seen == {"unused": False, "planned": False, "broken": False, "met": True}
    assert [model.name for model in find_public_models(task)] == ["met"]


def test_tables_for_everybody_have_no_hidden_name(task, board, alice):
    told = str(build_public_table(task))
    for word in ("masked", "draft", "withdrawn", "refused"):
        assert word not in told
    assert "Anonymous 2" in told


def test_an_anonymous_model_keeps_its_number_when_others_are_revealed(task, alice):
    today = timezone.now().date()
    for number, (name, until) in enumerate((("a", today + DAY), ("b", today + 9 * DAY))):
        model = accepted_model(task, alice, name=name, is_published=True, queued_at=at(number))
        task.submissions.filter(pk=model.pk).update(anonymous_until=until)
    before = [model.name for model in read_matrix(task).models]
    task.submissions.filter(name="a").update(anonymous_until=today)
    assert before == ["Anonymous 1", "Anonymous 2"]
    assert [model.name for model in read_matrix(task).models] == ["a", "Anonymous 2"]


def test_hidden_sets_and_old_versions_are_on_no_board(task, people):
    for access in ("scoring", "standard", "hidden"):
        set_version(task, f"a-{access}", access=access)
    old = set_version(task, "b-scoring")
    model = measured(accepted_model(task, name="m", is_published=True), old, 0.9)
    hidden = task.evaluation_sets.get(name="a-hidden").versions.get()
    measured(model, hidden, 0.1)
    set_version(task, "b-scoring", size=7)
    for user in people.values():
        matrix = read_matrix(task, user)
        assert [(one.name, one.version) for one in matrix.sets] == [
            ("a-scoring", 1), ("b-scoring", 2), ("a-standard", 1),
        ]  # fmt: skip
        assert [one.name for one in matrix.counting_sets] == ["a-scoring", "b-scoring"]
        assert matrix.has_weighted_set
        assert np.isnan(matrix.numbers.values).all()
        assert matrix.numbers.outdated.tolist() == [[False, True, False]]
    assert "hidden" not in str(build_public_table(task))


def test_while_no_set_has_a_weight_those_beside_the_board_count(task):
    set_version(task, "control", access="standard")
    set_version(task, "secret", access="hidden")
    matrix = read_matrix(task)
    assert [one.name for one in matrix.counting_sets] == ["control"]
    assert not matrix.has_weighted_set
    assert not may_freeze_rates(task)
    set_version(task, "round-1")
    assert [one.name for one in read_matrix(task).counting_sets] == ["round-1"]


def test_numbers_stand_in_their_units(task):
    version = set_version(task, "round-1", size=1000)
    model = measured(
        accepted_model(task, is_published=True), version, 0.75, speed=40, memory=3, consistency=0.9
    )
    EvaluationRun.objects.filter(suite="plain").update(
        in_the_loop=True, warnings=["Two are missing."]
    )
    matrix = read_matrix(task)
    assert matrix.metrics == (
        "accuracy",
        "macro_f1",
        "throughput",
        "memory",
        "fairness",
        "robustness",
        "latency_p95",
        "memory_mean",
        "fairness_gap",
        "fairness_consistency",
        "robustness_drop",
        "robustness_consistency",
    )
    assert matrix.weighable_metrics == matrix.metrics[:6]
    numbers = matrix.numbers
    values = [75, 75, 40, 3, 70, 55, 0.25, 2, 10, 90, 20, 90]
    assert numbers.values[0, 0].tolist() == pytest.approx(values)
    scores = dict(Score.objects.filter(slice="").values_list("metric", "low"))
    assert numbers.low[0, 0, 0] == pytest.approx(100 * scores["accuracy"])
    assert numbers.low[0, 0, 5] == pytest.approx(100 * scores["worst_kind"])
    assert numbers.high[0, 0, 0] - 75 == pytest.approx(75 - numbers.low[0, 0, 0])
    assert np.isnan(numbers.low[0, 0, 2:4]).all()
    assert numbers.n[0, 0].tolist() == [1000, 1000, 0, 0, 1000, 1000, 0, 0, *[1000] * 4]
    assert numbers.in_the_loop.all()
    assert numbers.warned.all()
    assert matrix.models[0].id == model.pk
    assert 4 < matrix.sets[0].detectable_difference < 8  # of 1,000 examples at 75 %


def test_of_repeated_runs_the_first_good_one_counts(task):
    version = set_version(task, "round-1")
    model = accepted_model(task, is_published=True)
    for number, accuracy in ((1, 0.5), (2, 0.6), (3, 0.9)):
        measured(model, version, accuracy, number=number)
    EvaluationRun.objects.filter(number=1).update(outcome="oom", state="failed")
    assert read_matrix(task).numbers.values[0, 0, 0] == 60


def test_costs_of_another_runner_are_not_compared(task):
    version = set_version(task, "round-1")
    for number, runner in enumerate(["process", "docker", "docker", "file"]):
        model = accepted_model(task, name=runner, is_published=True, queued_at=at(number))
        measured(model, version, 0.5 + number / 10)
        model.runs.update(runner=runner)
    EvaluationRun.objects.filter(runner="file").update(usage={"seconds": 1.0})
    for number in range(3):  # that nobody else sees
        draft = accepted_model(task, name=f"draft {number}", queued_at=at(10 + number))
        measured(draft, version, 0.5)
    rates = dict.fromkeys(("accuracy", "throughput", "memory", "fairness", "robustness"), 1.0)
    Board.objects.create(task=task, rates=rates)
    matrix = read_matrix(task, UserFactory(is_superuser=True))
    assert matrix.numbers.runner == "docker"
    known = ~np.isnan(matrix.numbers.values[..., 2:4]).any(axis=(1, 2))
    assert known.tolist() == [False, True, True, False, False, False, False]
    found = {
        row.model.name: row.missing
        for row in rank_board(matrix, choose_opening_weights(task, matrix)).rows
    }
    assert found["process"] == ("throughput (measured by process)", "memory (measured by process)")


def test_one_more_model_does_not_take_the_costs_of_the_others(task):
    version = set_version(task, "round-1")

    def publish(name, runner, count, second):
        for number in range(count):
            model = accepted_model(
                task, name=f"{name} {number}", is_published=True, queued_at=at(second)
            )
            measured(model, version, 0.5 + number / 10, speed=50 + number, memory=2 + number)
            model.runs.update(runner=runner, queued_at=at(second))

    publish("another machine's", "own-docker", 5, 0)
    assert read_matrix(task).numbers.runner == "own-docker"
    assert not may_freeze_rates(task)  # rates are not frozen by themselves on what somebody tells
    publish("first", "process", 1, 0)
    assert may_freeze_rates(task)
    publish("second", "docker", 1, 1)  # earlier in the alphabet
    assert read_matrix(task).numbers.runner == "process"
    publish("third", "docker", 2, 2)
    publish("a chat model", "endpoint", 5, 2)
    assert read_matrix(task).numbers.runner == "docker"
    freeze_rates(task=task)
    publish("fourth", "process", 4, 3)
    matrix = read_matrix(task)
    assert matrix.numbers.runner == "docker"
    assert (~np.isnan(matrix.numbers.values[:, 0, 2])).sum() == 3
    freeze_rates(task=task, may_replace=True)
    assert read_matrix(task).numbers.runner == "process"
    task.submissions.exclude(name__startswith="second").update(is_published=False)
    assert read_matrix(task).numbers.runner == "docker"


def test_memory_stays_where_no_run_was_long_enough_for_a_pace(task):
    version = set_version(task, "round-1")
    measured(accepted_model(task, is_published=True), version, 0.5, speed=None, memory=3)
    numbers = read_matrix(task).numbers
    assert numbers.runner == "process"
    assert np.isnan(numbers.values[0, 0, 2])
    assert numbers.values[0, 0, 3] == 3


def test_a_run_too_short_for_memory_has_no_score_by_rates_and_a_range_by_anchors(task):
    fill_board(task, sets=("round-1",))
    freeze_rates(task=task)
    version = task.evaluation_sets.get(name="round-1").versions.get()
    measured(accepted_model(task, name="short", is_published=True), version, 0.9, memory=None)
    matrix = read_matrix(task)
    for mode, is_ranked in (("robust", False), ("anchored", True)):
        rows = rank_board(matrix, choose_opening_weights(task, matrix), mode).rows
        (short,) = [row for row in rows if row.model.name == "short"]
        assert bool(short.rank) == is_ranked
        (missing,) = short.missing
        assert missing.startswith("memory (")
        assert short.dynascore.is_range == is_ranked


def test_intervals_are_honest_before_and_after_resamples(task):
    """Of five examples that are all right, and of 98 % before there are resamples."""
    version = set_version(task, "round-1", size=5)
    few = accepted_model(task, name="few", is_published=True, queued_at=at(0))
    measured(few, version, 1.0)
    high = accepted_model(task, name="high", is_published=True, queued_at=at(1))
    measured(high, version, 0.98)
    Score.objects.filter(run__submission=few, metric="worst_group").update(value=1)
    Score.objects.filter(run__submission=high, metric="worst_group").update(value=0.98)
    Score.objects.filter(value=1).update(low=0.5655, high=1)
    Score.objects.filter(value=1, metric="macro_f1").update(low=1, high=1)  # as once stored
    Score.objects.filter(value=0.98).update(low=0.9, high=0.995)
    one = np.ones(200, dtype="<f4").tobytes()
    for run in few.runs.all():
        metrics = (
            ["accuracy", "macro_f1", "worst_group"] if run.suite == "plain" else ["worst_kind"]
        )
        Resample.objects.bulk_create(Resample(run=run, metric=m, values=one) for m in metrics)
    matrix = read_matrix(task)
    assert matrix.numbers.is_provisional
    rows = {
        row.model.name: row.metrics
        for row in rank_board(matrix, choose_opening_weights(task, matrix)).rows
    }
    for name in ("accuracy", "fairness"):
        assert rows["few"][name].low == pytest.approx(56.55, abs=12)
        assert rows["few"][name].high == 100
        assert 99 < rows["high"][name].high <= 100
    assert rows["few"]["macro_f1"] == (100, None, None)
    for run in high.runs.all():
        Resample.objects.create(run=run, metric="accuracy", values=one)
    Board.objects.update_or_create(task=task, defaults={"renewed_to": timezone.now()})
    assert not read_matrix(task).numbers.is_provisional


def test_stored_resamples_serve_and_the_rest_follows_the_interval(task):
    fill_board(task, models=2, sets=("round-1",))
    for number in (0, 1):
        task.submissions.filter(name=f"Model {number}").update(queued_at=at(number))
    first = EvaluationRun.objects.filter(submission__name="Model 0", suite="plain").get()
    stored = np.linspace(0.3, 0.5, 200, dtype="<f4")
    stored[7] = np.nan
    Resample.objects.create(run=first, metric="accuracy", values=stored.tobytes())
    suite = EvaluationRun.objects.filter(submission__name="Model 0", suite="robustness").get()
    Resample.objects.create(run=suite, metric="consistency", values=b"")
    matrix = read_matrix(task)
    assert matrix.drawn_metrics == ("accuracy", "macro_f1", "fairness", "robustness")
    draws = matrix.numbers.draws[0]
    stored[7] = 0.4  # where a resample has no value, that of all examples
    assert draws[0, 0] == pytest.approx(100 * stored, rel=1e-6)
    for metric, model in ((0, 1), (1, 0), (3, 0)):
        column = matrix.metrics.index(matrix.drawn_metrics[metric])
        width = (matrix.numbers.high - matrix.numbers.low)[model, 0, column]
        assert draws[metric, model].std() == pytest.approx(width / 3.92, rel=0.3)
    assert not np.corrcoef(draws[0, 1], draws[1, 1])[0, 1] > 0.5


def test_asking_again_costs_four_queries_until_something_changes(task, django_assert_num_queries):
    fill_board(task)
    Board.objects.create(task=task)
    with django_assert_num_queries(8):
        before = read_matrix(task)
    with django_assert_num_queries(4):
        assert read_matrix(task).numbers is before.numbers
    model = accepted_model(task, name="late", is_published=True)
    version = task.evaluation_sets.first().versions.get()
    changes = [
        lambda: measured(model, version, 0.9, finished_at=timezone.now()),
        lambda: Board.objects.update(renewed_to=timezone.now()),
        lambda: task.submissions.filter(name="Model 0").update(withdrawn_at=timezone.now()),
        lambda: task.evaluation_sets.filter(name="round-2").update(access="hidden"),
    ]
    for change in changes:
        change()
        with django_assert_num_queries(8):
            after = read_matrix(task)
        assert after.numbers is not before.numbers
        before = after
    task.submissions.filter(name="late").update(name="renamed")
    with django_assert_num_queries(4):
        assert "renamed" in [model.name for model in read_matrix(task).models]


def test_more_models_cost_no_more_queries(task, alice, django_assert_num_queries):
    fill_board(task, models=2)
    with django_assert_num_queries(9):
        read_matrix(task, alice)
    fill_board(task, first=2, models=9, sets=("round-1", "round-2", "round-3", "round-4"))
    another_time = type(task).objects.get(pk=task.pk)
    with django_assert_num_queries(9):
        read_matrix(another_time, alice)


def test_what_a_set_is_too_small_for_is_left_out_of_its_mean(task):
    """A set with fewer than two groups defines no fairness, whichever model is asked."""
    first, second = (set_version(task, name) for name in ("round-1", "round-2"))
    for accuracy in (0.75, 0.65):
        model = accepted_model(task, name=f"{accuracy}", is_published=True)
        measured(model, first, accuracy)
        measured(model, second, accuracy - 0.1)
    gone = {"value": None, "low": None, "high": None, "n": 0}
    Score.objects.filter(metric__in=["worst_group", "group_gap"], run__version=second).update(
        **gone
    )
    matrix = read_matrix(task)
    column = matrix.metrics.index("fairness")
    assert matrix.numbers.undefined[:, column].tolist() == [False, True]
    rows = {
        row.model.name: row for row in rank_board(matrix, choose_opening_weights(task, matrix)).rows
    }
    assert rows["0.75"].metrics["fairness"].value == pytest.approx(70)
    assert rows["0.75"].metrics["fairness"].low == pytest.approx(69.5, abs=0.5)
    assert rows["0.75"].metrics["fairness_gap"].value == pytest.approx(10)
    assert rows["0.75"].metrics["accuracy"].value == pytest.approx(70)
    assert not rows["0.75"].missing
    Score.objects.filter(metric="worst_group").update(**gone)
    Board.objects.update_or_create(task=task, defaults={"renewed_to": timezone.now()})
    again = read_matrix(task)
    board = rank_board(again, choose_opening_weights(task, again))
    assert not board.rows[0].missing
    assert "fairness" not in board.rows[0].points_by_metric
    assert any(notice.startswith("fairness doesn't count") for notice in board.notices)


def test_scores_without_a_value_are_not_run(task):
    version = set_version(task, "round-1")
    measured(accepted_model(task, is_published=True), version, 0.75)
    Score.objects.filter(metric="worst_group").update(value=None, low=None, high=None)
    matrix = read_matrix(task)
    row = rank_board(matrix, choose_opening_weights(task, matrix), "robust").rows[0]
    assert row.metrics["fairness"].value is None
    assert row.rank == "1"  # nobody has it, so it is left out
    notices = rank_board(matrix, choose_opening_weights(task, matrix), "robust").notices
    assert any(notice.startswith("fairness ") for notice in notices)
