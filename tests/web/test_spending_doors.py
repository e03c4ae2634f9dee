"""Every door by which a priced target is asked: its calls are counted, and held to its budgets."""

from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import pytest
from django.test import Client

from core.accounts.services import get_annotator
from evaluation.jobs import evaluate_next
from evaluation.models import Submission
from evaluation.runs.services import ensure_target_submissions
from evaluation.training.next_target import _ask_old_model
from evaluation.training.trainer_protocol import LocalTrainer
from leaderboard.models import Battle, Contestant
from tasks.models import ModelUse, RoundTarget, TargetModel
from tasks.targets.ask_before_opening import SilentTargets, ask_targets
from tasks.targets.send_test import NoAnswer, send_test
from tests.support.battles import battle_arena, send
from tests.support.chat_server import chat_server
from tests.support.evaluations import queued_run, set_version
from tests.support.factories import UserFactory
from tests.support.streaming_server import ChatServer
from tests.support.submissions import url_of
from tests.support.talks import opened, say
from tests.support.writing import open_form, signed_in
from tests.web.conftest import HTMX

INPUTS = {"premise": "Rain fell.", "hypothesis": "It was wet."}
HEARD = {"good": lambda messages: "neutral", "useless": lambda messages: "perhaps"}


@pytest.fixture
def server(db, settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    with chat_server(HEARD) as server:
        server.tokens = (3, 2)
        yield server


def priced(task, server, model="good", **options):
    options = {"model": model, "price_in": 1_000_000, **options}
    if task.config.kind == "examples":
        options["structured"] = "never"
    return TargetModel.objects.create(
        task=task, name=model, adapter="openai_chat", url=server.url, options=options
    )


@pytest.fixture
def target(nli, server):
    """The only target of an open round of `nli`."""
    nli.round_targets.all().delete()
    return RoundTarget.objects.create(round=nli, target=priced(nli.task, server)).target


def write(target):
    client = signed_in(UserFactory())
    client.post("/t/nli/write/", open_form(client), **HTMX)


def practise(target, url="/t/nli/try/"):
    shown = Client().get(url).context["form"].initial
    sent = {"attempt_key": uuid4(), "assignment": shown["assignment"], "goal": shown["goal"]}
    Client().post(url, {**sent, "hypothesis": "The shop was open at ten."}, **HTMX)


def fool(target):
    ensure_target_submissions(target.task)
    practise(target, url_of(Submission.objects.get(target=target), "try/"))


def send_a_test(target):
    with suppress(NoAnswer):
        send_test(target, INPUTS)


def open_round(target):
    with suppress(SilentTargets):
        ask_targets([target], target.rounds.get())


@dataclass
class Shape:
    answer: str = "label"

    def select_inputs(self, row):
        return row


def train(target):
    _ask_old_model(LocalTrainer(lambda: None), target, [INPUTS], Shape())


DOORS = [write, practise, fool, send_a_test, open_round, train]
IN_ROUNDS = [write, practise, open_round]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("model", HEARD)
def test_an_answer_is_counted_whether_of_use_or_not(target, server, door, model):
    TargetModel.objects.update(options=target.options | {"model": model})
    target.refresh_from_db()
    door(target)
    use = ModelUse.objects.get()
    assert (use.tokens_in, use.tokens_out, use.requests, use.cost) == (3, 2, 1, 3)
    assert (use.round is not None) == (door in IN_ROUNDS)


@pytest.mark.parametrize("door", DOORS)
def test_who_has_spent_all_is_not_asked(target, server, door):
    TargetModel.objects.update(options=target.options | {"tokens_a_day": 5})
    target.refresh_from_db()
    ModelUse.objects.create(target=target, day="2026-03-01", requests=1, tokens_in=9)
    door(target)
    assert len(server.seen) == 1
    door(target)
    assert len(server.seen) == 1


def test_a_battle_costs_both_models(server):
    task = battle_arena(models={})
    TargetModel.objects.all().delete()
    voter = get_annotator(UserFactory())
    for model in HEARD:
        target = priced(task, server, model, requests_a_day=1)
        Contestant.objects.create(task=task, name=model, target=target, is_live=True)
    send(task, voter)
    assert [*ModelUse.objects.values_list("round", "tokens_in", "cost")] == [(None, 3, 3)] * 2
    failed = send(task, voter)
    assert (failed.state, failed.failure, len(server.seen)) == ("failed", "spent", 2)
    owner = signed_in(UserFactory(is_superuser=True))
    assert 'data-uses="useless"' in owner.get("/own/duel/arena/").text


@pytest.fixture
def spent_arena(server):
    """Of three models one may not be asked any more."""
    task = battle_arena(models={"one": {"label": "One."}, "two": {"label": "Two."}})
    target = priced(task, server, requests_a_day=0)
    Contestant.objects.create(task=task, name="spent", target=target, is_live=True)
    return task


def test_battles_draw_no_model_that_has_spent_all(spent_arena):
    for _ in range(9):
        send(spent_arena, get_annotator(UserFactory()))
    assert not Battle.objects.filter(left__name="spent").exists()
    assert not Battle.objects.filter(right__name="spent").exists()
    assert Battle.objects.count() == 9


def test_a_turn_is_counted_and_so_is_one_that_broke_off(db, settings, alice):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    round, _ = opened()
    round.round_targets.all().delete()
    with ChatServer().running() as server:
        options = {"model": "m", "requests_a_round": 2}
        target = TargetModel.objects.create(
            task=round.task, name="m", adapter="openai_chat", url=server.url, options=options
        )
        RoundTarget.objects.create(round=round, target=target)
        client = signed_in(alice)
        say(client, "When?")
        assert ModelUse.objects.get().requests == 1
        server.breaks_off = True
        server.say = ["Four words were said."]
        say(client, "And then?")
        use = ModelUse.objects.get()
        assert (use.round, use.requests, use.tokens_out) == (round, 2, 6)
        assert use.tokens_in > 10
        say(client, "And then?")
    assert len(server.asked) == 2


@pytest.mark.django_db(transaction=True)
def test_an_evaluation_is_counted_and_stops_when_all_is_spent(nli, server, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    target = priced(nli.task, server, requests_a_day=6)
    model = next(one for one in ensure_target_submissions(nli.task) if one.target == target)
    version = set_version(nli.task, may_leave=True)
    ends = []
    for number in (1, 2):
        run = queued_run(model, version, number=number)
        evaluate_next(run.pk)
        run.refresh_from_db()
        ends.append(run.outcome)
    assert ends == ["ok", "model_error"]
    use = ModelUse.objects.get()
    assert (use.requests, use.tokens_in, use.round) == (6, 18, None)
    assert "requests_a_day is used up" in run.log + run.error
