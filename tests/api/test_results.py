"""`results` of a model: its score and each round's number, or why not; what who may know."""

# ruff: noqa: F811  (fixtures are named where they are used)

from uuid import uuid4

import pytest
import yaml
from django.core.cache import cache

from evaluation.models import EvaluationRun, EvaluationSetVersion, Score
from tasks.models import TaskMember
from tests.support.api_errors import (
    round_set,
    task,  # noqa: F401
)
from tests.support.boards import fill_board, measured, ranks_any
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import RoundFactory


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def url(model):
    return f"/api/v1/models/{model.pk}/results/"


def test_numbers_of_a_round_that_is_still_judged_are_provisional(api, alice, task):
    ranks_any(task)
    version = round_set(task, 1)
    model = accepted_model(task, alice, is_published=True)
    measured(model, version, 0.82)
    notes = api.get(url(model)).json()["notes"]
    assert not any(note.startswith("round1_acc") for note in notes)
    EvaluationSetVersion.objects.update(settled_at=None, judged=132, to_judge=400)
    cache.clear()
    found = api.get(url(model)).json()
    assert found["round1_acc"] == 0.82
    words = "provisional, 132 of 400 judged"
    assert any(note.startswith(f"round1_acc: {words}") for note in found["notes"])
    board = api.get("/api/v1/tasks/nli/leaderboard/").json()
    assert [one["is_provisional"] for one in board["sets"]] == [True]
    rounds = api.get("/api/v1/tasks/nli/leaderboard/rounds/").json()
    assert [one["is_provisional"] for one in rounds["rounds"]] == [True]
    told = [(one["judged"], one["to_judge"]) for one in (*board["sets"], *rounds["rounds"])]
    assert told == [(132, 400)] * 2


def test_the_worst_part_has_its_own_number_of_examples(api, anybody, alice, task):
    """Not that of the smallest part, of which it is stored."""
    version = set_version(task, "dev", size=300)
    model = measured(accepted_model(task, alice, is_published=True), version, 0.6)
    plain, robust = (model.runs.get(suite=suite) for suite in ("plain", "robustness"))
    parts = [
        Score(run=robust, metric="accuracy_after", kind="leet", value=0.31, n=203),
        Score(run=robust, metric="accuracy_after", kind="upper_case", value=0.448, n=29),
        Score(run=robust, metric="accuracy_after", kind="typo", value=0.1, n=3),  # too few
        Score(run=plain, metric="accuracy", slice="mentions=women", value=0.5, n=80),
        Score(run=plain, metric="accuracy", slice="mentions=men", value=0.9, n=40),
        Score(run=plain, metric="accuracy", slice="tag=even", value=0.2, n=150),  # is no group
    ]
    Score.objects.bulk_create(parts)
    for run, metric, least in ((robust, "worst_kind", 29), (plain, "worst_group", 40)):
        run.scores.filter(metric=metric).update(n=least)
    of_set = api.get(url(model)).json()["scores"]["dev"]
    assert (of_set["robustness"]["n"], of_set["fairness"]["n"]) == (203, 80)
    listed = api.get(f"/api/v1/models/{model.pk}/scores/").json()["results"]
    sizes = {one["metric"]: one["n"] for one in listed if not one["slice"] and not one["kind"]}
    assert (sizes["worst_kind"], sizes["worst_group"]) == (203, 80)
    (shown,) = anybody.get(f"/m/{model.pk}/").context["results"]
    (group,) = (one for one in shown.scores if one.metric == "worst_group")
    assert group.n == 80
    version.evaluation_set.answers_public = False
    version.evaluation_set.save()
    EvaluationRun.objects.update(is_shown=True)
    listed = anybody.get(f"/api/v1/models/{model.pk}/scores/").json()["results"]
    sizes = {one["metric"]: one["n"] for one in listed}
    assert (sizes["worst_kind"], sizes["worst_group"]) == (29, 40)


def test_a_score_rests_on_no_small_round(api, alice, task):
    model = measured(accepted_model(task, alice, is_published=True), round_set(task, 1), 0.82)
    found = api.get(url(model)).json()
    assert (found["round1_acc"], found["dynascore"], found["rank"]) == (0.82, None, None)
    notes = dict(note.split(": ", 1) for note in found["notes"] if note.count(": "))
    assert "385" in notes["round1_acc"]
    assert "large enough" in notes["dynascore"]


def test_a_scored_model_of_two_rounds(api, alice, task):
    ranks_any(task)
    first, second = round_set(task, 1), round_set(task, 2)
    RoundFactory(task=task, number=3, state="open")
    RoundFactory(task=task, number=4, state="draft")
    model = accepted_model(task, alice, is_published=True)
    measured(model, first, 0.82)
    measured(model, second, 0.6)
    found = api.get(url(model)).json()
    assert found["model"] == str(model.pk)
    assert (found["name"], found["task"], found["is_over"]) == ("mine", "nli", True)
    assert (found["round1_acc"], found["round2_acc"], found["round3_acc"]) == (0.82, 0.6, None)
    assert "round4_acc" not in found
    assert 0 < found["dynascore_low"] < found["dynascore"] < found["dynascore_high"] < 100
    assert found["rank"] == "1"
    assert found["scores"]["round-1"]["accuracy"] == {
        "value": 0.82,
        "low": 0.815,
        "high": 0.825,
        "n": 1000,
        "is_rounded": False,
    }
    assert (found["throughput"], found["memory"], found["fairness"]) == (50, 2, 0.66)
    assert (found["memory_mean"], found["latency_p95"]) == (1.333333, 0.2)
    assert (found["fairness_gap"], found["robustness"], found["robustness_drop"]) == (
        0.1,
        0.51,
        0.2,
    )
    assert found["robustness_consistency"] == found["fairness_consistency"] == 0.9
    assert [note for note in found["notes"] if note.startswith("round3_acc: ")]
    assert found["error"] is None


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ("{main: macro_f1, also: [accuracy]}", 0.25),
        ("{main: macro_f1, also: [exact_match]}", 0.125),
        ("{main: macro_f1}", None),
    ],
)
def test_the_accuracy_of_a_round_is_no_other_metric(api, alice, task, metrics, told):
    config = yaml.safe_load(task.config_text) | {"metrics": yaml.safe_load(metrics)}
    del config["leaderboard"]
    task.config_text = yaml.safe_dump(config)
    task.save()
    model = measured(accepted_model(task, alice, is_published=True), round_set(task, 1), 0.2148)
    plain = model.runs.get(suite="plain")
    plain.scores.filter(metric="accuracy", slice="").update(value=0.25)
    plain.scores.create(metric="exact_match", value=0.125, n=1000)
    found = api.get(url(model)).json()
    assert found["scores"]["round-1"]["macro_f1"]["value"] == 0.2148
    assert found["round1_acc"] == told
    assert any("scores['round-1']" in note for note in found["notes"]) == (told is None)


def test_a_new_installation_has_a_control_set_and_an_open_round(api, alice, task):
    """As after the first `./run`: a starter and one's own model on seeds that nobody trained on."""
    RoundFactory(task=task, number=1, state="open")
    control = set_version(task, "control", access="standard", source="control")
    measured(accepted_model(task, name="starter", is_published=True), control, 0.5)
    model = measured(accepted_model(task, alice), control, 0.7)
    found = api.get(url(model)).json()
    assert (found["phase"], found["is_over"]) == ("scored", True)
    assert isinstance(found["dynascore"], float)
    assert found["round1_acc"] is None
    assert any(note.startswith("round1_acc: ") for note in found["notes"])
    assert len(found["notes"]) > 1


def test_a_score_is_the_same_with_and_without_others(api, alice, task):
    version = set_version(task)
    model = measured(accepted_model(task, alice), version, 0.7)
    alone = api.get(url(model)).json()
    measured(accepted_model(task, is_published=True), version, 0.9)
    among = api.get(url(model)).json()
    assert (alone["rank"], among["rank"]) == ("1", "2")
    assert alone["dynascore"] == among["dynascore"]


def test_without_a_set_there_is_no_score_and_it_says_so(api, alice, task):
    found = api.get(url(accepted_model(task, alice))).json()
    assert (found["dynascore"], found["phase"], found["is_over"]) == (None, "accepted", True)
    assert found["scores"] == {}
    assert {"dynascore", "round1_acc"} <= {note.split(":")[0] for note in found["notes"]}


def test_it_is_not_over_while_a_run_is_not(api, alice, task):
    version = set_version(task)
    model = measured(accepted_model(task, alice), version, 0.7)
    queued_run(model, set_version(task, "other"))
    found = api.get(url(model)).json()
    assert (found["phase"], found["is_over"]) == ("queued", False)
    assert found["dynascore"] is None
    assert found["notes"]


def test_it_is_not_over_before_the_board_has_its_numbers(api, alice, task, monkeypatch):
    """Numbers that this process read may lack a run that ended at the same moment as another."""
    from leaderboard.board import matrix

    version = set_version(task)
    model = accepted_model(task, alice)
    old = matrix.read_matrix(task, alice).numbers
    measured(model, version, 0.7)
    monkeypatch.setattr(matrix, "_read_numbers", lambda *_: old)
    found = api.get(url(model)).json()
    assert (found["phase"], found["is_over"], found["dynascore"]) == ("renewing", False, None)


def test_why_it_failed_is_for_those_inside(api, bobs, anybody, alice, bob, task):
    version = set_version(task, may_leave=True)
    model = accepted_model(task, alice)
    measured(model, set_version(task, "other"), 0.6)
    ended = {"submission": model, "version": version, "state": "failed"}
    EvaluationRun.objects.create(**ended, suite="fairness", outcome="model_error", error="No base.")
    EvaluationRun.objects.create(
        **ended, outcome="timeout", error="Too slow.",
        limit="30 minutes", measured="not done", log="line 7",
    )  # fmt: skip
    found = api.get(url(model)).json()
    assert found["dynascore"] is None
    assert found["error"] == {
        "outcome": "timeout",
        "sentence": "Too slow.",
        "limit": "30 minutes",
        "measured": "not done",
        "log": "line 7",
    }
    assert "dynascore: not run: dev." in found["notes"]
    assert bobs.get(url(model)).status_code == 404
    model.is_published = True
    model.save(update_fields=["is_published"])
    assert bobs.get(url(model)).json()["error"] is None
    assert anybody.get(url(model)).json()["error"] is None
    TaskMember.objects.create(task=task, user=bob, role="owner")
    assert bobs.get(url(model)).json()["error"]["log"] == "line 7"


def test_a_refused_model(api, alice, task):
    model = accepted_model(task, alice, outcome="rejected", error="No config.json.", log="tail")
    model.state = "failed"
    model.save(update_fields=["state"])
    found = api.get(url(model)).json()
    assert (found["phase"], found["is_over"]) == ("refused", True)
    assert found["error"]["sentence"] == "No config.json."
    assert found["error"]["log"] == "tail"


def test_a_withdrawn_model_tells_nothing(api, alice, task):
    from evaluation.submissions.services import withdraw_model

    model = measured(accepted_model(task, alice, is_published=True), set_version(task), 0.7)
    withdraw_model(submission=model, actor=alice)
    found = api.get(url(model)).json()
    assert (found["phase"], found["scores"], found["error"]) == ("withdrawn", {}, None)


def test_who_may_ask(api, anybody, bobs, alice, task):
    model = measured(accepted_model(task, alice), set_version(task), 0.7)
    assert [who.get(url(model)).status_code for who in (api, bobs, anybody)] == [200, 404, 404]
    assert api.get(f"/api/v1/models/{uuid4()}/results/").status_code == 404
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    assert api.get(url(model)).status_code == 404


def test_an_anonymous_model_keeps_its_name(anybody, alice, task):
    from datetime import timedelta

    from django.utils import timezone

    day = timezone.now().date() + timedelta(days=9)
    model = accepted_model(task, alice, is_published=True, anonymous_until=day)
    measured(model, set_version(task), 0.7)
    text = anybody.get(url(model)).text
    assert "mine" not in text
    assert str(model.pk) in text


def test_queries_do_not_grow(api, alice, task, django_assert_max_num_queries):
    models = fill_board(task, models=2)
    mine = measured(accepted_model(task, alice), task.evaluation_sets.first().versions.get(), 0.7)
    with django_assert_max_num_queries(30) as few:
        api.get(url(mine))
    fill_board(task, models=9, first=len(models))
    with django_assert_max_num_queries(len(few)):
        api.get(url(mine))
