"""Short evaluations of paid chat models: asked once, paid once, shown to whom they may be."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from collections import Counter

import pytest

from core.errors import Invalid, Refused
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSet, ShortAnswer, ShortEvaluation, Submission
from evaluation.runs.short import asking
from evaluation.runs.short.services import MAX_PER_DAY, evaluate_in_full
from evaluation.submissions.services import cancel_evaluations
from tests.support.chat_models import (  # noqa: F401
    CALL,
    PRICES,
    _asks_this_machine,
    hand_in,
    server,
    worked,
)
from tests.support.made_sets import task  # noqa: F401
from tests.support.short_evaluations import (
    asked_premises,
    open_set,
    paid_model,
    requested,
    worked_short,
)
from tests.support.submissions import scored, url_of, work_off

State = ShortEvaluation.State


class Killed(BaseException):
    """As a signal that ends a worker: nothing catches it."""


@pytest.fixture
def version(task):
    return open_set(task)


@pytest.fixture
def model(task, alice, server, version):
    return paid_model(task, alice, server)


def answers_of(evaluation):
    return list(evaluation.answers.order_by("number"))


def test_a_model_of_short_evaluations_gets_no_runs_until_its_owner_wants_them(model, alice, server):
    assert (model.state, model.runs.count()) == (State.DONE, 0)
    assert asked_premises(server) == []
    (run,) = evaluate_in_full(submission=model, actor=alice)
    work_off()
    run.refresh_from_db()
    assert run.outcome == Outcome.OK
    with pytest.raises(Refused):
        evaluate_in_full(submission=model, actor=alice)


def test_it_stops_when_the_interval_is_narrow_enough(task, alice, server):
    open_set(task, size=300)
    model = paid_model(task, alice, server)
    evaluation = worked_short(requested(model, half_width=0.1))
    assert (evaluation.state, evaluation.outcome, evaluation.stop_reason) == (
        State.DONE,
        Outcome.OK,
        "width",
    )
    assert 40 <= evaluation.asked < 150
    assert evaluation.high - evaluation.low <= 0.2
    assert evaluation.low < 2 / 3 < evaluation.high
    assert len(asked_premises(server)) == evaluation.asked == evaluation.answers.count()
    assert evaluation.spent == pytest.approx(evaluation.asked * CALL)
    model.refresh_from_db()
    # The check has asked about five public examples.
    assert model.spent == pytest.approx((evaluation.asked + 5) * CALL)


def test_with_all_questions_asked_it_is_the_whole_score(model, server):
    evaluation = worked_short(requested(model, half_width=0.005))
    assert (evaluation.asked, evaluation.stop_reason) == (60, "width")
    assert evaluation.value == evaluation.low == evaluation.high == pytest.approx(40 / 60)


def test_it_stops_at_the_most_questions_and_at_the_most_cost(task, alice, server):
    open_set(task, size=300)
    model = paid_model(task, alice, server)
    evaluation = worked_short(requested(model, half_width=0.01, most_questions=50))
    assert (evaluation.asked, evaluation.stop_reason) == (50, "questions")
    evaluation = worked_short(requested(model, half_width=0.01, most_cost=60 * CALL))
    assert evaluation.stop_reason == "cost"
    assert 40 <= evaluation.asked <= 60
    assert evaluation.spent <= 60 * CALL
    assert evaluation.answers.count() == evaluation.asked


def test_too_little_money_gives_no_estimate(model):
    evaluation = worked_short(requested(model, most_cost=10 * CALL))
    assert (evaluation.state, evaluation.outcome) == (State.FAILED, Outcome.OVER_BUDGET)
    assert evaluation.value is None
    assert evaluation.spent <= 10 * CALL


def test_the_cap_of_the_model_counts_too(task, alice, server, version):
    model = paid_model(task, alice, server, most_cost=20 * CALL)
    evaluation = worked_short(requested(model))
    assert evaluation.outcome == Outcome.OVER_BUDGET
    model.refresh_from_db()
    assert model.spent <= 20 * CALL


def test_a_killed_worker_asks_and_pays_for_nothing_twice(model, server, monkeypatch):
    store, stored = asking._Session._store, []

    def store_some(session, answer, result):
        if len(stored) == 15:
            raise Killed
        stored.append(answer.position)
        store(session, answer, result)

    evaluation = requested(model, half_width=0.005)
    with monkeypatch.context() as patch:
        patch.setattr(asking._Session, "_store", store_some)
        with pytest.raises(Killed):
            worked_short(evaluation)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.asked) == (State.RUNNING, 15)
    ShortEvaluation.objects.update(state=State.QUEUED, lease_token=None, lease_until=None)
    evaluation = worked_short(evaluation)
    assert evaluation.state == State.DONE
    assert set(Counter(asked_premises(server)).values()) == {1}
    # Open calls of the killed worker have no answer, and are not asked again.
    assert evaluation.lost == 60 - evaluation.asked
    assert 0 < evaluation.lost <= 8
    assert evaluation.low <= 40 / 60 <= evaluation.high
    assert evaluation.high - evaluation.low <= 2 * evaluation.lost / 60 + 1e-9


def test_a_server_that_is_away_or_busy_is_waited_for(model, server):
    """Only the question that failed is asked again, and paid for once."""
    failures = [503, 429]
    server.behaviours["m"] = lambda messages: (
        failures[0] if failures and "Premise 7." in messages[-1]["content"] else "neutral"
    )
    evaluation = requested(model, half_width=0.005)
    while failures:
        evaluation = worked_short(evaluation)
        assert (evaluation.state, evaluation.outcome) == (State.QUEUED, "")
        ShortEvaluation.objects.update(not_before=None)
        failures.pop(0)
    evaluation = worked_short(evaluation)
    assert (evaluation.state, evaluation.asked, evaluation.lost) == (State.DONE, 60, 0)
    assert evaluation.away_since is None
    assert evaluation.spent == pytest.approx(60 * CALL)
    counts = Counter(asked_premises(server))
    assert [text for text, count in counts.items() if count > 1] == [counts.most_common()[0][0]]
    assert "Premise 7." in counts.most_common()[0][0]


def test_a_wrong_key_and_no_usable_answer_end_it(model, server):
    server.key = "another"
    evaluation = worked_short(requested(model))
    assert (evaluation.state, evaluation.outcome) == (State.FAILED, Outcome.MODEL_ERROR)
    server.key = ""
    server.behaviours["m"] = lambda messages: "It may be any."
    evaluation = worked_short(requested(model))
    assert (evaluation.state, evaluation.outcome) == (State.FAILED, Outcome.INVALID_OUTPUT)
    assert evaluation.unanswered == evaluation.asked == 40


def test_an_answer_of_no_label_counts_as_wrong(model, server):
    server.behaviours["m"] = lambda messages: (
        "It may be any." if re.search(r"Premise \d0\.", messages[-1]["content"]) else "neutral"
    )
    evaluation = worked_short(requested(model, half_width=0.005))
    assert evaluation.unanswered == 5
    wrong = {n for n in range(60) if n % 3 == 2 or n in (10, 20, 30, 40, 50)}
    assert evaluation.value == pytest.approx(1 - len(wrong) / 60)


def test_a_cancelled_one_is_not_begun(model, alice, server):
    evaluation = requested(model)
    cancel_evaluations(submission=model, actor=alice)
    evaluation = worked_short(evaluation)
    assert (evaluation.state, evaluation.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    assert server.seen == []


def test_a_lost_lease_is_paid_for_and_stores_no_answer(model, server, monkeypatch):
    mark = asking._Session._mark_sent

    def mark_and_lose(session, answer):
        mark(session, answer)
        if answer.number == 5:
            ShortEvaluation.objects.update(state=State.CANCELLED, lease_token=None)

    monkeypatch.setattr(asking._Session, "_mark_sent", mark_and_lose)
    evaluation = worked_short(requested(model))
    calls = len(asked_premises(server))
    assert (evaluation.state, evaluation.asked) == (State.CANCELLED, 0)
    assert not ShortAnswer.objects.exclude(is_right=None).exists()
    model.refresh_from_db()
    assert model.spent == pytest.approx((calls + 5) * CALL)


def test_inputs_that_may_not_leave_any_more_are_not_sent(model, server):
    evaluation = requested(model)
    EvaluationSet.objects.update(may_leave=False)
    evaluation = worked_short(evaluation)
    assert (evaluation.state, evaluation.outcome) == (State.FAILED, Outcome.INFRASTRUCTURE)
    assert asked_premises(server) == []


def test_who_may_have_which(task, alice, server, version, model):
    open_set(task, "secret", answers_public=False)
    open_set(task, "hidden", access="hidden")
    open_set(task, "stays", may_leave=False)
    for name in ("secret", "hidden", "stays", "other"):
        with pytest.raises(Invalid):
            requested(model, name)
    for wrong in (
        {"half_width": 0.001},
        {"half_width": 0.3},
        {"most_questions": 39},
        {"most_cost": 0.0},
    ):
        with pytest.raises(Invalid):
            requested(model, **wrong)
    first = requested(model)
    with pytest.raises(Refused):  # one at a time
        requested(model)
    worked_short(first)
    for _ in range(MAX_PER_DAY - 1):
        worked_short(requested(model))
    with pytest.raises(Refused) as refused:
        requested(model)
    assert refused.value.code == "quota"
    scored(model, version)
    with pytest.raises(Refused):
        requested(model)


def test_only_metrics_of_right_and_wrong_and_paid_kinds(task, alice, server, version, model):
    hub = Submission.objects.create(task=task, owner=alice, kind="hub", name="H", state=State.DONE)
    with pytest.raises(Refused):
        requested(hub)
    exchanged = {"accuracy": "macro_f1", "macro_f1": "accuracy"}
    task.config_text = re.sub(
        "accuracy|macro_f1", lambda found: exchanged[found[0]], task.config_text
    )
    task.save()
    model = Submission.objects.get(pk=model.pk)
    assert model.task.config.metrics.main == "macro_f1"
    with pytest.raises(Refused):
        requested(model)


def test_the_page_of_its_owner(task, alice, bob, client, model, server):
    client.force_login(bob)
    assert client.get(url_of(model, "short/")).status_code == 404
    client.force_login(alice)
    assert client.post(url_of(model, "short/"), {"evaluation_set": "open"}).status_code == 422
    sent = {"evaluation_set": "open", "points": "10", "most_questions": "50", "most_cost": "0.5"}
    assert client.post(url_of(model, "short/"), sent).status_code == 302
    evaluation = ShortEvaluation.objects.get()
    assert (evaluation.half_width, evaluation.most_questions, evaluation.most_cost) == (
        pytest.approx(0.1),
        50,
        0.5,
    )
    cancel = url_of(model, f"short/{evaluation.pk}/cancel/")
    assert "short-list" in client.get(url_of(model, "short/")).text
    assert client.post(cancel).status_code == 302
    evaluation.refresh_from_db()
    assert evaluation.state == State.CANCELLED
    assert client.post(url_of(model, "evaluate-in-full/")).status_code == 302
    assert EvaluationRun.objects.count() == 1


def test_examples_that_many_evaluations_asked_are_asked_less(task, alice, server):
    open_set(task, size=300)
    model = paid_model(task, alice, server)
    first = worked_short(requested(model, half_width=0.1, most_questions=40))
    second = worked_short(requested(model, half_width=0.1, most_questions=40))
    assert (first.most_exposed, first.exposed_in) == (1, 1)
    assert second.exposed_in == 2
    positions = [{answer.position for answer in answers_of(one)} for one in (first, second)]
    assert second.most_exposed == 1 + bool(positions[0] & positions[1])
