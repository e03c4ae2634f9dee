"""Runs in which a chat model writes: what it is asked, what is stored, and how bad ones end."""

import itertools

import pytest
from django.urls import reverse

from annotation.models import Example
from core.errors import Invalid, Refused
from dynabench.adversaries import run_services, writer_services
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry, WriterCall
from dynabench.adversaries.services import start_run
from tasks.models import ModelUse, TargetModel
from tests.support.adversaries import make_adversary, run_to_its_end, sentiment_round, work_on
from tests.support.chat_server import chat_server
from tests.support.judged_answers import chat_target

pytestmark = pytest.mark.django_db
End, State = AdversaryRun.End, WriterCall.State
FEW = {"strategies": "irony\nnegation", "topics": "food", "proposals": 4, "turns": 2}


@pytest.fixture
def server(settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    with chat_server({}) as found:
        yield found


@pytest.fixture
def scene(server):
    """A sentiment round, and a function that makes an adversary whose model writes so."""
    round, owner = sentiment_round()
    target = chat_target(round.task, server.url, model="m", price_in=2, price_out=2)

    def make(write, **values):
        server.behaviours["m"] = write
        return make_adversary(round, owner, "language_model", model=target.name, **FEW | values)

    return round, owner, make


NUMBERS = itertools.count()


def write_new(messages):
    """A text of words that no other text has."""
    number = next(NUMBERS)
    return f"Harbour{number} evenings{number} pleased{number} everybody{number}."


def test_what_fools_is_stored_as_an_example(scene):
    _round, _owner, make = scene
    run = run_to_its_end(make(write_new))
    assert (run.state, run.ended_by) == ("done", End.FINISHED)
    examples = list(Example.objects.all())
    assert examples
    assert all(one.by_program and one.outcome == "fooled" for one in examples)
    # Texts meant as negative don't fool a model that always says so.
    assert {one.goal for one in examples} == {"positive", "neutral"}
    calls = run.writer_calls.count()
    assert run.calls == calls + run.logged_tries.count() + run.examples


def test_the_models_prices_and_uses_are_counted(scene, server):
    round, _owner, make = scene
    server.tokens = (1000, 50)
    run = run_to_its_end(make(write_new))
    calls = run.writer_calls.count()
    assert run.tokens == calls * 1050
    assert run.cost == pytest.approx(calls * 1050 * 2e-6)
    use = ModelUse.objects.get(target__name="chat", round=round)
    assert use.requests == calls


def test_a_model_that_tells_too_few_tokens_pays_for_what_it_read(scene, server):
    _round, _owner, make = scene
    server.tokens = (0, 0)
    run = run_to_its_end(make(write_new, max_tokens=500))
    assert run.ended_by == End.TOKENS
    assert run.tokens >= 500


def test_replies_of_no_use_are_paid_for_too(scene, server):
    _round, _owner, make = scene
    server.tokens = (1000, 50)
    run = run_to_its_end(make(lambda messages: ""))
    calls = list(run.writer_calls.all())
    assert {(one.reason, one.tokens) for one in calls} == {("empty", 1050)}
    assert run.tokens == len(calls) * 1050
    assert run.cost == pytest.approx(len(calls) * 1050 * 2e-6)


def test_a_killed_run_sends_no_request_twice(scene, server, monkeypatch):
    _round, owner, make = scene
    run = start_run(adversary=make(write_new, turns=3), actor=owner)
    finish, count = writer_services.AdversaryWriter.finish_call, []

    def die_at_the_third(self, call, prompt):
        count.append(1)
        if len(count) == 3:
            raise SystemExit
        return finish(self, call, prompt)

    monkeypatch.setattr(writer_services.AdversaryWriter, "finish_call", die_at_the_third)
    with pytest.raises(SystemExit):
        attack(run.pk)
    AdversaryRun.objects.update(state="queued", lease_token=None)
    run = work_on(run)
    assert run.ended_by == End.FINISHED
    assert run.writer_calls.filter(state=State.LOST).count() == 1
    assert len(server.seen) == run.writer_calls.count() - 1
    assert run.calls == run.writer_calls.count() + run.logged_tries.count() + run.examples


def test_slices_give_what_one_piece_gives(scene, server, monkeypatch):
    _round, _owner, make = scene

    def write(messages):
        return f"Harbour{len(str(messages))} pleased{len(str(messages))} everybody."

    run_to_its_end(make(write))
    whole = set(AdversaryTry.objects.values_list("text", "state"))
    sent = len(server.seen)
    monkeypatch.setattr(run_services, "SLICE_SECONDS", 0.02)
    again = make(write)
    run_to_its_end(again)
    assert set(again.logged_tries.values_list("text", "state")) == whole
    assert len(server.seen) == 2 * sent


@pytest.mark.parametrize(
    ("write", "end"),
    [
        (lambda messages: "We liked the same old harbour.", End.REPEATS),
        (lambda messages: "这次旅行非常好，我们都很喜欢。", End.UNUSABLE),
        (lambda messages: "x" * 200_000, End.REPEATS),
        (lambda messages: '""', End.UNUSABLE),
    ],
    ids=["a loop", "another language", "a flood", "nothing"],
)
def test_what_writes_nothing_of_use_is_stopped(scene, write, end):
    _round, _owner, make = scene
    run = run_to_its_end(make(write, proposals=500, turns=2))
    assert (run.state, run.ended_by) == ("done", end)
    assert run.writer_calls.count() <= 2 * run_services.MAX_FRUITLESS_REPLIES + 2
    assert Example.objects.count() <= 1


def test_ten_thousand_near_copies_are_few_tries(scene):
    _round, _owner, make = scene
    count = []

    def write(messages):
        count.append(1)
        return f"On day {len(count)} the guide showed us the very same old harbour once more."

    run = run_to_its_end(make(write, proposals=5000))
    assert run.ended_by == End.REPEATS
    assert run.logged_tries.count() <= 2


def test_a_model_that_is_away_is_asked_again_later(scene, server):
    _round, owner, make = scene
    adversary = make(lambda messages: 503)
    run = start_run(adversary=adversary, actor=owner)
    attack(run.pk)
    run.refresh_from_db()
    assert (run.state, WriterCall.objects.get().state) == ("queued", State.WAITING)
    server.behaviours["m"] = write_new
    AdversaryRun.objects.update(not_before=None)
    assert work_on(run).ended_by == End.FINISHED
    assert not WriterCall.objects.filter(state=State.WAITING).exists()


def test_the_models_own_budget_ends_a_run(scene):
    _round, _owner, make = scene
    adversary = make(write_new)
    model = TargetModel.objects.get(name="chat")
    model.options["requests_a_day"] = 2
    model.save()
    run = run_to_its_end(adversary)
    assert run.ended_by == End.SPENT
    assert run.writer_calls.filter(state=State.ANSWERED).count() == 2


def test_a_model_that_is_gone_ends_a_run(scene):
    _round, _owner, make = scene
    adversary = make(write_new)
    TargetModel.objects.filter(name="chat").delete()
    TargetModel.objects.create(
        task=adversary.task, name="other", adapter="openai_chat", options={"model": "m"}
    )
    run = run_to_its_end(adversary)
    assert (run.state, run.error) == ("failed", writer_services.GONE_MESSAGE)


def test_a_task_without_a_chat_model_says_what_is_missing(client):
    round, owner = sentiment_round()
    with pytest.raises(Refused) as refusal:
        make_adversary(round, owner, "language_model", model="chat")
    assert refusal.value.code == "no_writer"
    client.force_login(owner)
    page = client.get(reverse("own-adversaries:adversaries", args=["sentiment"]))
    assert [kind.name for kind, _reason in page.context["lacking_kinds"]] == ["language_model"]


def test_only_a_chat_model_of_the_task_can_write(scene):
    round, owner, _make = scene
    with pytest.raises(Invalid) as refusal:
        make_adversary(round, owner, "language_model", model="no-such-model")
    assert refusal.value.field == "model"


def test_the_form_offers_the_tasks_chat_models(scene, client):
    _round, owner, _make = scene
    client.force_login(owner)
    address = reverse("own-adversaries:make", args=["sentiment", "language_model"])
    form = client.get(address).context["options_form"]
    assert form.fields["model"].choices == [("chat", "chat")]
    values = {f"options-{name}": field.initial for name, field in form.fields.items()}
    values |= {"options-model": "chat", "name": "Writer", "seed": 1}
    values |= {"max_calls": 10, "max_examples": 3, "max_minutes": 5}
    client.post(address, values)
    assert Adversary.objects.get().options["model"] == "chat"
