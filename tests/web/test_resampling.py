"""Resamples of runs: as the scores' own bootstrap has them, and the same for all models."""

import csv
import io

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser

from dynabench.client.commands.results import describe_results
from evaluation.contract import SetRow
from evaluation.models import EvaluationRun
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run
from evaluation.templatetags.model_words import metric as in_words
from leaderboard import jobs
from leaderboard.board import bootstrap as resampling
from leaderboard.board.bootstrap import CHUNK_EXAMPLES, sum_resamples
from leaderboard.board.matrix import DRAW_COUNT
from leaderboard.jobs import find_unresampled_runs, renew_boards
from leaderboard.models import Board, Resample
from leaderboard.rounds.standing import find_model_standing
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory

SIZE = 400
PARTS = {
    "worst_group": {"metric": "accuracy", "slice__startswith": "mentions="},
    "worst_kind": {"metric": "accuracy_after", "kind__gt": "", "n__gte": 15},
}
"""The scores of which the least is drawn again."""


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    resampling._draw_counts.cache_clear()


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def premise(number):
    return f"Person {number} didn't open {'his' if number % 3 else 'her'} shop today."


def rows(size=SIZE):
    return [
        SetRow(
            f"u{number}",
            {"premise": premise(number), "hypothesis": f"{number}"},
            (LABELS[number % 3],),
            {"tag": ("even" if number % 2 == 0 else "odd",)},
        )
        for number in range(size)
    ]


def answerer(wrong_every, whimsical=False):
    """Right but for each so-manieth example; whimsical: another answer to changed texts."""

    def answer(inputs):
        number = int("".join(c for c in inputs["hypothesis"] if c.isdigit()) or 0)
        label = number % 3 if number % wrong_every else (number + 1) % 3
        is_changed = inputs["premise"] != premise(number)
        return LABELS[(label + (whimsical and is_changed and number % 4 == 0)) % 3]

    return answer


@pytest.fixture
def evaluated(task, monkeypatch):
    """Evaluate a model that answers by a function; its runs that ended, by suite."""

    def make(version, answer, suites=("plain",), **fields):
        model = accepted_model(task, is_published=True, **fields)
        runner = ScriptedRunner(answer)
        run_with(monkeypatch, runner)
        found = {}
        for suite in suites:
            queued_run(model, version, suite)
            run = claim_next_run()
            execute_run(run)
            found[suite] = EvaluationRun.objects.get(pk=run.pk)
            assert found[suite].outcome == "ok", found[suite].error
        return found

    return make


def values_of(run, metric):
    return np.frombuffer(Resample.objects.get(run=run, metric=metric).values, dtype="<f4")


def test_resamples_spread_as_the_scores_interval_does(task, evaluated):
    runs = evaluated(
        set_version(task, rows=rows()),
        answerer(4, whimsical=True),
        ("plain", "robustness", "fairness"),
    )
    assert renew_boards() == 3
    for suite, metric in (
        ("plain", "accuracy"),
        ("plain", "macro_f1"),
        ("plain", "worst_group"),
        ("robustness", "worst_kind"),
    ):
        values = values_of(runs[suite], metric)
        scores = runs[suite].scores.filter(**PARTS.get(metric, {"metric": metric, "slice": ""}))
        score = scores.order_by("value", "kind", "slice").first()
        assert values.shape == (DRAW_COUNT,)
        assert values.mean() == pytest.approx(score.value, abs=0.01)
        low, high = np.quantile(values, (0.025, 0.975))
        width = score.high - score.low
        assert high - low == pytest.approx(width, rel=0.35)
        assert (low, high) == pytest.approx((score.low, score.high), abs=0.35 * width)
        assert width > 0


def test_models_are_resampled_alike(task, evaluated):
    version = set_version(task, rows=rows())
    same, again, other = (
        evaluated(version, answerer(every), name=str(every))["plain"] for every in (4, 4, 8)
    )
    renew_boards()
    one, two, three = (values_of(run, "accuracy") for run in (same, again, other))
    assert (one == two).all()
    # What one has wrong of each eighth example, the other has too: so they move together.
    assert np.corrcoef(one, three)[0, 1] == pytest.approx(0.65, abs=0.15)
    assert (one - three).std() < 0.85 * np.hypot(one.std(), three.std())


def test_another_version_has_other_resamples(task, evaluated):
    runs = [
        evaluated(set_version(task, name, rows=rows(size)), answerer(4), name=name)["plain"]
        for name, size in (("a", SIZE), ("b", SIZE - 1))
    ]
    renew_boards()
    one, two = (values_of(run, "accuracy") for run in runs)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.4


def test_an_example_has_its_draws_whatever_is_left_out(monkeypatch):
    def vectors(statistics):
        return np.array(statistics, dtype=float)[:, None]

    places = [0, 3, CHUNK_EXAMPLES - 1, CHUNK_EXAMPLES, 5 * CHUNK_EXAMPLES + 2]
    (whole,) = sum_resamples([(place, (1.0,)) for place in places], [vectors], "ab" * 32)
    parts = [sum_resamples([(place, (1.0,))], [vectors], "ab" * 32)[0] for place in places]
    assert (whole == sum(parts)).all()
    assert len({part.tobytes() for part in parts}) == len(places)
    (other,) = sum_resamples([(place, (1.0,)) for place in places], [vectors], "cd" * 32)
    assert (whole != other).any()
    assert sum_resamples([], [vectors], "ab" * 32)[0].size == 0


def test_draws_are_poissons():
    drawn = np.hstack([resampling._draw_counts("ab" * 32, chunk) for chunk in range(20)])
    assert drawn.mean() == pytest.approx(1, abs=0.01)
    assert drawn.var() == pytest.approx(1, abs=0.01)
    per_draw = drawn.sum(axis=1)
    assert per_draw.std() == pytest.approx(np.sqrt(drawn.shape[1]), rel=0.2)


def test_columns_that_come_later_are_added():
    def wider(statistics):
        return np.ones((len(statistics), 1 + max(statistics)))

    given = [(0, (0,)), (CHUNK_EXAMPLES, (2,))]
    (sums,) = sum_resamples(given, [wider], "ab" * 32)
    (first,), (second,) = (sum_resamples([one], [wider], "ab" * 32) for one in given)
    assert sums.shape == (DRAW_COUNT, 3)
    assert (sums[:, :1] == first + second[:, :1]).all()
    assert (sums[:, 1:] == second[:, 1:]).all()


def test_boards_are_renewed_once(task, evaluated, django_assert_max_num_queries):
    evaluated(set_version(task, rows=rows(30)), answerer(4), ("plain", "robustness"))
    assert renew_boards() == 2
    board, kept = Board.objects.get(), list(Resample.objects.order_by("pk").values())
    assert board.renewed_to is not None
    with django_assert_max_num_queries(20):
        assert renew_boards() == 0
    assert Board.objects.get().renewed_to == board.renewed_to
    assert list(Resample.objects.order_by("pk").values()) == kept


def test_only_what_counts_is_resampled(task, evaluated):
    version = set_version(task, rows=rows(30))
    again = evaluated(version, answerer(4))["plain"]
    model = again.submission
    EvaluationRun.objects.create(
        submission=model, version=version, number=2, outcome="ok", state="done",
        predictions=again.predictions.name,
    )  # fmt: skip
    evaluated(set_version(task, "hidden", access="hidden"), answerer(4), name="hidden")
    evaluated(set_version(task, "beside", access="standard"), answerer(4), name="beside")
    EvaluationRun.objects.create(
        submission=model, version=version, number=3, outcome="oom", state="failed"
    )
    assert [run.pk for run in find_unresampled_runs(task)] == [again.pk]
    renew_boards()
    assert {resample.run_id for resample in Resample.objects.all()} == {again.pk}
    task.evaluation_sets.filter(name="beside").update(access="scoring")
    assert renew_boards() == 1


def test_a_run_without_its_file_is_tried_once(task, evaluated, caplog):
    run = evaluated(set_version(task, rows=rows(30)), answerer(4))["plain"]
    run.predictions.storage.delete(run.predictions.name)
    assert renew_boards() == 1
    assert "cannot be resampled" in caplog.text
    assert [bytes(one.values) for one in run.resamples.all()] == [b""]
    assert renew_boards() == 0


def test_a_metric_that_cannot_be_computed_here_is_left_out(evaluated, task, settings, tmp_path):
    settings.SP_BLEU_MODEL = tmp_path / "none"
    task.config_text = task.config_text.replace("macro_f1", "sp_bleu")
    task.save()
    run = evaluated(set_version(task, rows=rows(30)), answerer(4))["plain"]
    renew_boards()
    assert [one.metric for one in run.resamples.all()] == ["accuracy"]


def test_what_takes_long_goes_on_the_next_time(task, evaluated, monkeypatch):
    version = set_version(task, rows=rows(30))
    for number in range(3):
        evaluated(version, answerer(4), name=str(number))
    clock = iter(range(100))
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(jobs, "MAX_SECONDS", 3)
    assert renew_boards() == 2
    assert renew_boards() == 1


def test_one_task_in_trouble_keeps_no_other(task, evaluated, monkeypatch, caplog):
    evaluated(set_version(task, rows=rows(30)), answerer(4))
    broken = TaskFactory(code="qa")
    set_version(broken, rows=[SetRow("u", {"question": "Who?"}, ("Ada",))])
    renew = jobs._renew_board

    def fragile(one, stop):
        if one == broken:
            raise RuntimeError("no disk")
        return renew(one, stop)

    monkeypatch.setattr(jobs, "_renew_board", fragile)
    assert renew_boards() == 1
    (line,) = (one for one in caplog.records if one.levelname == "ERROR")
    assert line.args == (broken,)


def test_answers_are_read_as_they_were_stored(task, evaluated):
    run = evaluated(set_version(task, rows=rows(30)), answerer(4))["plain"]
    said = [answer.value for answer in resampling.read_answers(run)]
    assert said == [answerer(4)(row.inputs) for row in rows(30)]


@pytest.fixture(params=["open", "sealed"])
def two_models(request, task, evaluated):
    """Their ids, and the set on which both were evaluated, perturbed too."""
    fields = {"answers_public": request.param == "open"}
    version = set_version(task, "only", rows=rows(150), **fields)
    suites = ("plain", "robustness", "fairness")
    made = [
        evaluated(version, answerer(every, whimsical=True), suites, name=f"model {every}")
        for every in (4, 7)
    ]
    EvaluationRun.objects.update(is_shown=True)
    renew_boards()
    return [runs["plain"].submission_id for runs in made]


def percent(number):
    """A value with its interval, as each door tells it, to four digits of a percentage."""
    if not isinstance(number, dict):
        number = {name: getattr(number, name) for name in ("value", "low", "high")}
    return tuple(round(100 * number[name], 3) for name in ("value", "low", "high"))


def of_percent(number):
    return percent({name: number[name] / 100 for name in ("value", "low", "high")})


def test_each_door_shows_the_same_interval(two_models, task, client):
    """Row, set by set, model page, comparison, files and API tell one interval of a number."""
    one, other = two_models
    board, api = f"/t/{task.code}/leaderboard/", "/api/v1/"
    weights = {"w_accuracy": 4, **{f"w_{name}": 0 for name in (
        "macro_f1", "throughput", "memory", "fairness", "robustness")}}  # fmt: skip
    table = client.get(f"{board}?format=json").json()
    (row,) = (row for row in table["rows"] if row["id"] == str(one))
    results = client.get(f"{api}models/{one}/results/").json()
    told = client.get(f"{api}models/{one}/scores/").json()["results"]
    opened = client.get(f"{board}?open={one}").context["results"]
    page = client.get(f"/m/{one}/").context["results"]
    sides = client.get(f"{board}compare/", {"a": one, "b": other}).context["found"].rows
    compared = client.get(f"{api}tasks/{task.code}/leaderboard/compare/", {"a": one, "b": other})
    api_board = client.get(f"{api}tasks/{task.code}/leaderboard/").json()
    for metric in ("accuracy", "macro_f1"):
        whole = {"metric": metric, "slice": "", "kind": ""}
        (score,) = (one for one in told if {**one, **whole} == one)
        found = {
            "row": of_percent(row["metrics"][metric]),
            "set by set": of_percent(row["sets"]["only"][metric]),
            "results": percent(results["scores"]["only"][metric]),
            "scores": percent(score),
            "opened": percent(next(one for one in opened[0].scores if one.metric == metric)),
            "model page": percent(next(one for one in page[0].scores if one.metric == metric)),
            "compare": of_percent(
                next(one for one in sides if one.metric == metric).values[0]._asdict()
            ),
        }
        assert len({*found.values()}) == 1, found
        (side,) = (one for one in compared.json()["rows"] if one["metric"] == metric)
        assert of_percent(side["a"]) == found["row"]
        (line,) = (one for one in api_board["rows"] if one["id"] == str(two_models[0]))
        assert of_percent(line["metrics"][metric]) == found["row"]
    lines = csv.DictReader(io.StringIO(client.get(f"{board}?format=csv").text))
    (line,) = (line for line in lines if line["id"] == str(one))
    listed = client.get(f"/t/{task.code}/models/").context["rows"]
    (mine,) = (row for row in listed if row.submission.pk == one)
    assert percent(mine.scores[0][1]) == of_percent(row["metrics"]["accuracy"])
    standing = find_model_standing(mine.submission, AnonymousUser())
    paper = client.get(f"{board}?format=latex").text
    printed = describe_results(results)
    for metric in ("accuracy", "fairness", "robustness", "macro_f1"):
        number = row["metrics"][metric]
        values = [number[part] for part in ("value", "low", "high")]
        of_csv = [line[metric], line[f"{metric}_low"], line[f"{metric}_high"]]
        assert [float(text) for text in of_csv] == values
        digits = f"{values[0]:.1f} [{values[1]:.1f}, {values[2]:.1f}]"
        assert digits in paper or metric == "macro_f1"  # which has no weight
        assert f"{values[1]:.2f} to {values[2]:.2f}" in printed
        (tile,) = (one for one in standing.metrics if one.title == in_words(metric))
        assert (tile.value, tile.interval) == (
            f"{values[0]:.1f}", f"{values[1]:.1f} to {values[2]:.1f}",
        )  # fmt: skip
    assert row["dynascore"] == pytest.approx(standing.row.dynascore._asdict(), abs=1e-4)
    assert row["dynascore"]["low"] == pytest.approx(results["dynascore_low"], abs=1e-4)
    assert float(line["dynascore_low"]) == row["dynascore"]["low"]
    for mode in ("robust", "classic"):
        query = {"format": "json", "mode": mode, **weights}
        (row,) = (x for x in client.get(board, query).json()["rows"] if x["id"] == str(one))
        assert of_percent(row["dynascore"]) == pytest.approx(
            of_percent(row["metrics"]["accuracy"]), abs=2e-3
        )
    for metric in ("fairness", "robustness"):
        assert of_percent(row["metrics"][metric]) == of_percent(row["sets"]["only"][metric])
