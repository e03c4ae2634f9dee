"""Chat models behind an OpenAI-compatible interface: handed in, asked, paid for, shown."""

# ruff: noqa: F811  (fixtures are named where they are used)

import itertools
import json

import pytest
from django.test import Client

from core.accounts.models import LogEntry
from evaluation.contract import Outcome
from evaluation.jobs import check_submission
from evaluation.models import DatasetItem, EvaluationRun, Submission
from evaluation.runs.chat.asking import make_meter
from evaluation.runs.chat.estimate import estimate_cost
from evaluation.runs.chat.settings import ChatSettings, find_settings_problem, make_chat_settings
from evaluation.runs.chat.shots import ShotsGone, draw_shots, read_shots
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run, repeat_run
from evaluation.submissions.services import change_cap
from evaluation.test_sets.services import change_set
from tasks.targets.endpoints.base import Usage
from tests.support.chat_models import (  # noqa: F401
    CALL,
    PRICES,
    TOKENS,
    _asks_this_machine,
    hand_in,
    server,
    version,
    worked,
)
from tests.support.chat_server import chat_server
from tests.support.made_sets import make_set
from tests.support.releases import closed, people, released  # noqa: F401
from tests.support.submissions import url_of
from tests.support.writing import ok, signed_in

State = Submission.State


@pytest.fixture
def task(nli):
    return nli.task


def plain_run(submission):
    return submission.runs.get(suite="plain", number=1)


def test_it_is_asked_with_its_prompt_and_scored(task, alice, version, server):
    submission = worked(hand_in(task, alice, server, instructions="Decide.", secret="k3y"))
    run = plain_run(submission)
    assert (submission.state, submission.error) == (State.DONE, "")
    assert (run.outcome, run.scores.get(metric="accuracy", slice="").value) == (Outcome.OK, 1.0)
    assert submission.runs.count() == 1  # perturbed examples only where that was chosen
    assert len(server.seen) == 5 + 6
    system, asked = server.seen[-1]["messages"]
    assert system["content"].startswith("Decide.")
    assert "<premise>" in asked["content"]
    usage = run.usage
    assert (usage["tokens_in"], usage["tokens_out"], usage["cost"]) == (6000, 60, None)
    assert 0 < usage["latency_seconds"] <= usage["latency_p95_seconds"]
    assert "k3y" not in submission.secret
    assert "logprobs" not in server.seen[-1]


def test_log_probabilities_are_kept_where_they_are_asked_for(task, alice, version, server, client):
    submission = worked(hand_in(task, alice, server, logprobs=True))
    client.force_login(alice)
    reply = client.get(f"/api/v1/models/{submission.pk}/predictions/open/")
    rows = [json.loads(line) for line in reply.getvalue().splitlines()]
    assert [(row["logprob"], row["tokens"]) for row in rows] == [(-0.75, [*TOKENS])] * 6


def test_odd_answers_are_counted_apart_and_refuse_no_model(task, alice, version, client):
    """The model answers two in three; of the rest it says each in its own way that it does not."""
    odd = ["It may be any.", "<think>Hm.</think>", "<think>neutral</think>**Neutral**", "neutral."]
    calls = itertools.count()

    def answer(messages):
        number = next(calls)
        return odd[number % 4] if number >= 5 or number == 1 else "The label is neutral."

    with chat_server({"m": answer}) as server:
        submission = worked(hand_in(task, alice, server))
    run = plain_run(submission)
    assert (submission.state, run.outcome) == (State.DONE, Outcome.OK)
    unanswered = run.usage["unanswered"]
    assert unanswered.keys() <= {"unmatched", "empty"}
    assert 2 <= sum(unanswered.values()) <= 4
    right = 1 - sum(unanswered.values()) / 6
    assert run.scores.get(metric="accuracy", slice="").value == pytest.approx(right)
    client.force_login(alice)
    assert "check-warnings" in client.get(url_of(submission)).text
    (told,) = client.get(f"/api/v1/models/{submission.pk}/runs/").json()["results"]
    assert told["usage"]["unanswered"] == unanswered


def test_a_model_that_answers_none_of_five_is_refused(task, alice, version):
    with chat_server({"m": lambda messages: "It may be any."}) as server:
        submission = worked(hand_in(task, alice, server))
    assert (submission.state, submission.outcome) == (State.FAILED, Outcome.INVALID_OUTPUT)


def test_the_ready_prompt_asks_for_the_label_whatever_people_read(task):
    assert task.config.get_component("label").title == "Your label"
    assert "Give the label.\n" in make_chat_settings(task.config, model="m").instructions


def test_what_it_is_asked_with_is_its_identity_and_its_price_is_not(task):
    one = make_chat_settings(task.config, model="m")
    others = [
        make_chat_settings(task.config, model="other"),
        make_chat_settings(task.config, model="m", instructions="Decide."),
        make_chat_settings(task.config, model="m", template="{hypothesis} {premise}"),
        make_chat_settings(task.config, model="m", temperature=1.0),
        make_chat_settings(task.config, model="m", seed=3),
    ]
    digests = [each.compute_digest("https://a.example/v1", []) for each in (one, *others)]
    assert len({*digests, one.compute_digest("https://b.example/v1", [])}) == 7
    shots = [{"premise": "A.", "hypothesis": "B.", "label": "neutral"}]
    assert one.compute_digest("https://a.example/v1", shots) not in digests
    paid = make_chat_settings(task.config, model="m", most_cost=1.0, **PRICES)
    assert paid.compute_digest("https://a.example/v1", []) == digests[0]


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, None),
        ({"template": "{premise}"}, "template"),
        ({"template": "{premise} {hypothesis} {label}"}, "template"),
        ({"shots": 33}, "shots"),
        ({"temperature": 2.5}, "temperature"),
        ({"price_in": 1.0}, "most_cost"),
        ({"most_cost": 1.0}, "price_in"),
        ({"price_in": 1.0, "most_cost": 1.0}, None),
    ],
)
def test_the_first_thing_that_is_wrong_is_named(task, told, field):
    found = find_settings_problem(task.config, make_chat_settings(task.config, model="m", **told))
    assert (found and found[0]) == field
    if found:
        assert found[1] % found[2]


def test_examples_come_of_the_train_split_and_by_the_seed(closed):
    released(closed)
    task = closed.task
    one, same, other = (
        draw_shots(task, ChatSettings("m", shots=4, shots_seed=seed)) for seed in (7, 7, 8)
    )
    assert one == same != other
    assert {item.split for item in DatasetItem.objects.filter(pk__in=one)} == {"train"}
    chat = ChatSettings("m", shots=4, shot_items=one)
    assert [{*row} for row in read_shots(task, chat)] == [{"premise", "hypothesis", "label"}] * 4
    DatasetItem.objects.filter(pk=one[2]).update(is_withdrawn=True)
    with pytest.raises(ShotsGone):
        read_shots(task, chat)


def test_examples_in_the_prompt_are_sent_and_shown(closed, alice, client, server):
    released(closed)
    make_set(closed.task, "open", may_leave=True)
    submission = worked(hand_in(closed.task, alice, server, shots=2, shots_seed=5))
    assert submission.state == State.DONE
    roles = [turn["role"] for turn in server.seen[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    client.force_login(alice)
    page = client.get(url_of(submission))
    assert len(page.context["chat"]["shot_uids"]) == 2
    assert page.context["chat"]["shot_uids"][0] in page.text


def test_more_examples_than_there_are_are_refused(task, as_alice, version):
    told = {"kind": "chat", "name": "C", "source": "https://a.example/v1", "model": "m",
            "prompt": "task", "shots": "3", "secret": "s3cret"}  # fmt: skip
    reply = as_alice.post("/t/nli/submit/", told)
    assert reply.status_code == 422
    assert 'href="#id_shots"' in reply.text
    assert "s3cret" not in reply.text
    assert not Submission.objects.exists()


def test_the_page_estimates_and_stores_nothing_then_takes_it(task, as_alice, version, server):
    told = {"kind": "chat", "name": "C", "source": server.url, "model": "m", "prompt": "own",
            "instructions": "Decide.", "price_in": "1", "price_out": "2", "most_cost": "0.000001",
            "secret": "k3y"}  # fmt: skip
    asked = {**told, "estimate": "1"}
    page = as_alice.post("/t/nli/submit/", asked)
    found = page.context["estimate"]
    assert (found.requests, found.over_cap) == (6, True)
    part = as_alice.post("/t/nli/submit/", asked, headers={"HX-Request": "true"})
    assert part.text.strip().startswith('<div id="estimate"')
    assert not Submission.objects.exists()
    assert not server.seen
    reply = as_alice.post("/t/nli/submit/", {**told, "most_cost": "1"})
    submission = Submission.objects.get()
    assert reply.url == url_of(submission)
    assert submission.chat["instructions"] == "Decide."
    assert "k3y" not in as_alice.get(reply.url).text
    lacking = as_alice.post("/t/nli/submit/", {**told, "instructions": ""})
    assert 'href="#id_instructions"' in lacking.text


def test_an_estimate_counts_perturbed_examples_where_they_are_asked(task, version):
    plain = estimate_cost(task, make_chat_settings(task.config, model="m"))
    more = estimate_cost(task, make_chat_settings(task.config, model="m", perturbed=True))
    assert plain.requests == 6 < more.requests
    assert plain.cost is None
    assert plain.tokens_in > 6 * 20


def test_an_estimate_of_tokens_is_near_what_a_server_would_count(task, version):
    """Four characters a token, so the sum of what is sent, in characters, over four."""
    from evaluation.runs.chat.asking import make_chat_endpoint
    from evaluation.test_sets.selectors import read_input_rows

    chat = make_chat_settings(task.config, model="m")
    endpoint = make_chat_endpoint(task.config, "https://a.example", "", chat)
    sent = [endpoint.build_messages(row["inputs"]) for row in read_input_rows(version)]
    characters = sum(len(turn["content"]) for turns in sent for turn in turns)
    assert estimate_cost(task, chat).tokens_in == pytest.approx(characters / 4, rel=0.25)


def test_the_cap_ends_a_run_and_a_higher_one_lets_it_be_repeated(task, alice, version, server):
    submission = worked(hand_in(task, alice, server, most_cost=CALL * 7, **PRICES))
    run = plain_run(submission)
    assert (run.outcome, run.may_repeat, run.scores.count()) == (Outcome.OVER_BUDGET, True, 0)
    assert CALL * 7 <= submission.spent <= CALL * 11 + 1e-9
    asked = len(server.seen)
    assert submission.spent == pytest.approx(CALL * asked)
    again = repeat_run(run=run, actor=alice)
    worked(submission)
    again.refresh_from_db()
    assert again.outcome == Outcome.OVER_BUDGET  # nothing is asked while nothing is left
    assert len(server.seen) == asked
    change_cap(submission=submission, actor=alice, most_cost=1.0)
    last = repeat_run(run=again, actor=alice)
    worked(submission)
    last.refresh_from_db()
    assert (last.outcome, last.usage["cost"]) == (Outcome.OK, pytest.approx(6 * CALL))
    assert submission.spent == pytest.approx(CALL * len(server.seen))


def test_a_cap_below_the_check_refuses_it_with_the_reason(task, alice, version, server):
    submission = worked(hand_in(task, alice, server, most_cost=CALL, **PRICES))
    assert (submission.state, submission.outcome) == (State.FAILED, Outcome.OVER_BUDGET)


def test_prices_need_a_server_that_tells_tokens(task, alice, version, server):
    server.tokens = None
    submission = worked(hand_in(task, alice, server, most_cost=1.0, **PRICES))
    assert submission.state == State.FAILED
    assert "`usage`" in submission.error


def test_answers_of_another_form_are_wrong_ones_and_paid_for(task, alice, version, server):
    def answer(messages):
        return "Well, hard to say." if "Premise 3." in messages[-1]["content"] else "neutral"

    submission = hand_in(task, alice, server, most_cost=1.0, **PRICES)
    check_submission(submission.pk)
    server.behaviours["m"] = answer
    run = plain_run(worked(submission))
    assert run.outcome == Outcome.OK
    assert run.scores.get(metric="accuracy", slice="").value == pytest.approx(5 / 6)
    assert any("1 of 6" in warning for warning in run.warnings)
    assert run.usage["tokens_in"] == 6000


def test_a_model_that_never_answers_in_form_fails(task, alice, version, server):
    submission = hand_in(task, alice, server)
    check_submission(submission.pk)
    server.behaviours["m"] = lambda messages: "Dunno."
    run = plain_run(worked(submission))
    assert run.outcome == Outcome.INVALID_OUTPUT


def test_a_sealed_set_is_asked_with_consent_alone_and_marked(task, alice, version, server):
    sealed = make_set(task, "sealed")
    consented = make_set(task, "consented")
    change_set(
        evaluation_set=consented.evaluation_set, actor=alice, access="scoring", may_leave=True,
        answers_public=False, description="",
    )  # fmt: skip
    submission = worked(hand_in(task, alice, server))
    assert {run.version for run in submission.runs.all()} == {version, consented}
    for one in (sealed, consented):
        one.refresh_from_db()
    assert sealed.exposed_at is None
    assert consented.exposed_at is not None
    assert LogEntry.objects.filter(action="evaluation_set.changed").exists()
    assert LogEntry.objects.filter(action="evaluation_set.exposed").count() == 2  # and `open`


def test_consent_that_was_taken_back_counts_for_what_waits(task, alice, version, server):
    other = make_set(task, "other", may_leave=True)
    submission = hand_in(task, alice, server)
    check_submission(submission.pk)
    type(other).objects.filter(pk=other.pk).update(exposed_at=None)
    about = {"access": "scoring", "answers_public": False, "description": ""}
    change_set(evaluation_set=other.evaluation_set, actor=alice, may_leave=False, **about)
    asked = len(server.seen)
    worked(submission)
    assert len(server.seen) == asked + version.size
    run = submission.runs.get(version=other)
    assert (run.state, run.outcome) == (State.FAILED, Outcome.INFRASTRUCTURE)
    other.refresh_from_db()
    assert other.exposed_at is None


def test_the_five_examples_of_the_check_mark_their_set(task, alice, version, server):
    check_submission(hand_in(task, alice, server).pk)
    version.refresh_from_db()
    assert version.exposed_at is not None


def test_a_download_of_a_sealed_sets_inputs_marks_it_once(task, client, version):
    client.get(f"/t/nli/sets/{version.pk}/inputs/")
    version.refresh_from_db()
    first = version.exposed_at
    client.get(f"/t/nli/sets/{version.pk}/inputs/")
    client.get("/api/v1/tasks/nli/evaluation-sets/open/inputs/")
    version.refresh_from_db()
    assert version.exposed_at == first is not None


def test_its_owner_decides_who_may_try_it_and_each_try_counts_towards_the_cap(
    transactional_db, task, version, alice, bob, server
):
    submission = worked(hand_in(task, alice, server, **PRICES, most_cost=1.0))
    Submission.objects.update(is_published=True, spent=0)
    mine, theirs = signed_in(alice), signed_in(bob)
    url = url_of(submission, "try/")
    for client in (theirs, Client()):
        assert client.get(url).status_code == 404
        assert 'id="try-to-fool"' not in ok(client.get(url_of(submission))).text
    assert mine.get(url).status_code == 200
    assert theirs.post(url_of(submission, "open/")).status_code == 404
    mine.post(url_of(submission, "open/"))
    page = ok(theirs.get(url))
    shown = page.context["form"].initial
    sent = {name: shown[name] for name in ("assignment", "goal", "attempt_key")}
    said = ok(theirs.post(url, {**sent, "hypothesis": "It was open."}))
    assert 'id="verdict"' in said.text
    assert Submission.objects.get().spent == pytest.approx(CALL)
    Submission.objects.update(spent=1.0)
    calls = len(server.seen)
    assert theirs.post(url, {**sent, "hypothesis": "It was shut."}).status_code == 503
    assert len(server.seen) == calls
    mine.post(url_of(submission, "close/"))
    assert theirs.get(url).status_code == 404


def test_two_workers_share_one_cap(task, alice, version, server):
    """What one has paid the other one's meter sees."""
    make_set(task, "second", may_leave=True)
    submission = hand_in(task, alice, server, most_cost=CALL * 9, **PRICES)
    check_submission(submission.pk)
    submission.refresh_from_db()
    other = make_meter(submission)
    other.record_answer(Usage(4000, 0), 0.1)
    other.pay_for_tokens()
    run = claim_next_run()
    execute_run(run)
    run.refresh_from_db()
    assert run.outcome == Outcome.OVER_BUDGET
    assert EvaluationRun.objects.filter(state="queued").count() == 1
