"""Runs of adversaries: what they ask, store and stop at, and what a killed one leaves."""

from random import Random
from uuid import uuid4

import pytest
from django_q.models import OrmQ

from annotation.attempts import live_targets
from annotation.models import Example
from core.errors import Invalid, Refused
from core.jobs.queue import LONG_QUEUE, SLICE_QUEUE, enqueue
from dynabench.adversaries import jobs, run_services
from dynabench.adversaries.jobs import attack, begin_attack, start_nightly_adversaries
from dynabench.adversaries.kinds.base import KINDS, AdversaryKind, Attack, Probe
from dynabench.adversaries.models import Adversary, AdversaryRun, AdversaryTry
from dynabench.adversaries.services import (
    retire_adversary,
    set_schedule,
    start_run,
    stop_run,
)
from evaluation.isolation.queue.leases import Heartbeat
from tasks.models import Round
from tasks.targets.endpoints.base import Usage, build_unmatched_error
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.spending_services import SpentError
from tests.support.adversaries import (
    SCRIPT,
    make_adversary,
    options_of,
    run_to_its_end,
    sentiment_round,
    work_on,
)
from tests.support.factories import UserFactory
from validation.judging.services import open_session
from validation.models import QueueItem

pytestmark = pytest.mark.django_db
End, State = AdversaryRun.End, AdversaryTry.State


@pytest.fixture
def scene():
    return sentiment_round()


@pytest.fixture
def plug_in():
    """Register a kind whose search is a function of the test, as a package would."""
    made = []

    def register(search):
        class Odd(AdversaryKind, name="odd"):
            title, summary, place, settings = "Odd", "Odd.", 9, ()

            def plan_attacks(self, settings, labels, rng):
                return [Attack("positive", search)]

        made.append(Odd)
        return Odd

    yield register
    KINDS.pop("odd", None)


def test_a_search_finds_and_submits_what_fools_the_model(scene):
    round, owner = scene
    adversary = make_adversary(round, owner)
    run = run_to_its_end(adversary, owner)
    assert (run.state, run.ended_by) == ("done", End.FINISHED)
    example = Example.objects.get()
    assert example.outcome == "fooled"
    assert example.by_program
    assert example.annotator == adversary.annotator
    assert example.inputs["label"] == example.goal == "positive"
    assert "loved" not in example.inputs["text"]
    found = AdversaryTry.objects.get(example=example)
    assert (found.state, found.is_offered, found.is_fooled) == (State.STORED, True, True)
    assert found.chance == pytest.approx(0.2)
    assert run.examples == 1


def test_every_call_is_counted_once(scene):
    """Each try is one call of the model, and each submission one more."""
    round, owner = scene
    run = run_to_its_end(make_adversary(round, owner))
    assert run.calls == AdversaryTry.objects.count() + run.examples
    assert not AdversaryTry.objects.filter(state=State.ASKING).exists()


def test_a_text_that_only_measures_is_never_submitted(scene):
    """The sentence without “loved” fools the model, too, but means something else."""
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    shorter = AdversaryTry.objects.get(step__startswith="without “loved”")
    assert shorter.is_fooled
    assert shorter.example is None


def test_a_catch_that_cannot_be_repeated_is_none(scene, monkeypatch):
    """The example has the second answer of the model, not the first."""
    round, owner = scene
    asked = []
    answer_once = live_targets.request_answers_in_time

    def forget(*arguments):
        asked.append(arguments)
        return answer_once(*arguments)

    def repeat(attempt):
        target = round.round_targets.get().target
        target.options = {"label": "positive"}
        target.save()
        return ask(attempt)

    ask = run_services.ask_targets
    monkeypatch.setattr(live_targets, "request_answers_in_time", forget)
    monkeypatch.setattr(run_services, "ask_targets", repeat)
    run_to_its_end(make_adversary(round, owner))
    assert asked
    assert Example.objects.get().outcome == "not_fooled"


def test_a_second_run_asks_nothing_that_was_asked(scene):
    round, owner = scene
    adversary = make_adversary(round, owner)
    first = run_to_its_end(adversary)
    measuring = AdversaryTry.objects.filter(is_offered=False).count()
    second = run_to_its_end(adversary)
    assert second.number == first.number + 1
    digests = AdversaryTry.objects.values_list("digest", flat=True)
    assert len(set(digests)) == len(digests)
    assert AdversaryTry.objects.filter(is_offered=False).count() == measuring


def test_a_killed_run_continues_and_asks_nothing_twice(scene, monkeypatch):
    """A worker dies during the tenth call, whose answer stays unknown."""
    round, owner = scene
    adversary = make_adversary(round, owner)
    run = start_run(adversary=adversary, actor=owner)
    answer, calls = live_targets.request_answers_in_time, []

    def die_at_the_tenth(targets, inputs, payers, seconds):
        calls.append(inputs["text"])
        if len(calls) == 10:
            raise SystemExit
        return answer(targets, inputs, payers, seconds)

    monkeypatch.setattr(live_targets, "request_answers_in_time", die_at_the_tenth)
    with pytest.raises(SystemExit):
        attack(run.pk)
    AdversaryRun.objects.update(state="queued", lease_token=None)  # as the sweep does
    run = work_on(run)
    assert run.ended_by == End.FINISHED
    assert len(set(calls)) == len(calls)
    assert AdversaryTry.objects.get(state=State.LOST).text == calls[9]
    assert run.calls == len(calls) + run.examples


def test_a_run_that_dies_while_it_submits_stores_one_example(scene, monkeypatch):
    round, owner = scene
    run = start_run(adversary=make_adversary(round, owner), actor=owner)
    ask = run_services.ask_targets

    def die_afterwards(attempt):
        ask(attempt)
        raise SystemExit

    monkeypatch.setattr(run_services, "ask_targets", die_afterwards)
    with pytest.raises(SystemExit):
        attack(run.pk)
    monkeypatch.setattr(run_services, "ask_targets", ask)
    AdversaryRun.objects.update(state="queued", lease_token=None)
    run = work_on(run)
    assert AdversaryTry.objects.filter(example=Example.objects.get()).count() == 1
    assert run.examples == 1


def test_an_example_stored_after_a_stop_keeps_its_try(scene, monkeypatch):
    """The next run began while the models still answered, so it takes the try for a lost one."""
    round, owner = scene
    adversary = make_adversary(round, owner)
    run = start_run(adversary=adversary, actor=owner)
    ask, states = run_services.ask_targets, []

    def stop_and_begin_another(attempt):
        stop_run(run=run, actor=owner)
        next_run = start_run(adversary=adversary, actor=owner)
        run_services.RunSlice(next_run, Heartbeat(next_run))
        states.append(AdversaryTry.objects.get(key=attempt.key).state)
        AdversaryTry.objects.filter(key=attempt.key).update(state=State.LOST)
        return ask(attempt)

    monkeypatch.setattr(run_services, "ask_targets", stop_and_begin_another)
    attack(run.pk)
    assert states == [State.REPEATING]
    assert AdversaryTry.objects.get(example=Example.objects.get()).state == State.STORED


def test_slices_give_what_one_piece_gives(scene, monkeypatch):
    """Other jobs get their turn after each call, and the run finds the same."""
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    whole = set(AdversaryTry.objects.values_list("text", "state"))
    monkeypatch.setattr(run_services, "SLICE_SECONDS", 0)
    again = make_adversary(round, owner)
    run = run_to_its_end(again)
    assert run.ended_by == End.FINISHED
    assert set(again.logged_tries.values_list("text", "state")) == whole
    assert run.calls == again.logged_tries.count() + run.examples


@pytest.mark.parametrize(
    ("budget", "end"),
    [
        ({"max_calls": 5}, End.CALLS),
        ({"max_examples": 1}, End.EXAMPLES),
        ({"max_cost": 0}, End.COST),
    ],
)
def test_a_budget_ends_a_run(scene, budget, end):
    round, owner = scene
    sentences = "\n".join(f"positive | We loved boat number {letter}." for letter in "ABCDEFGH")
    run = run_to_its_end(make_adversary(round, owner, sentences=sentences, **budget))
    assert run.ended_by == end
    assert run.calls <= run.max_calls
    assert run.examples <= run.max_examples


def test_minutes_end_a_run(scene):
    round, owner = scene
    run = start_run(adversary=make_adversary(round, owner, max_minutes=1), actor=owner)
    AdversaryRun.objects.update(seconds=60)
    assert work_on(run).ended_by == End.MINUTES


def test_the_tasks_limit_of_tries_ends_a_run(scene):
    round, owner = scene
    task = round.task
    task.config_text = task.config_text.replace("tries_per_day: 50", "tries_per_day: 2")
    task.save()
    lines = [f"positive | We loved the {word} boat." for word in ("red", "green", "tiny", "old")]
    run = run_to_its_end(make_adversary(round, owner, sentences="\n".join(lines)))
    assert run.ended_by == End.CAPS
    assert Example.objects.count() == 2


def test_an_adversary_that_loops_is_stopped(scene, plug_in):
    def search(context):
        while True:
            yield Probe("We loved the same boat again.", "loop")

    plug_in(search)
    round, owner = scene
    run = run_to_its_end(make_adversary(round, owner, "odd"))
    assert (run.ended_by, run.calls) == (End.REPEATS, 1)


def test_ten_thousand_copies_become_few_examples(scene, plug_in):
    """Texts that differ by a number are asked, until a limit of the task or budget is reached."""

    def search(context):
        for number in range(10_000):
            yield Probe(f"The guide talked about the old harbour {number} times.", "copy")

    plug_in(search)
    round, owner = scene
    task = round.task
    task.config_text = task.config_text.replace("tries_per_day: 50", "tries_per_day: 5")
    task.save()
    run = run_to_its_end(make_adversary(round, owner, "odd", max_examples=500))
    assert run.ended_by == End.CAPS
    assert Example.objects.count() == 5


def test_an_adversary_that_breaks_ends_as_failed_and_says_why(scene, plug_in):
    def search(context):
        yield Probe("We loved the whole evening.", "one")
        raise KeyError("gone")

    plug_in(search)
    round, owner = scene
    run = run_to_its_end(make_adversary(round, owner, "odd"))
    assert run.state == "failed"
    assert "KeyError" in run.error
    assert run.calls == AdversaryTry.objects.count() == 1


def test_a_text_that_people_may_not_write_is_not_asked(scene, plug_in):
    def search(context):
        yield Probe("Short", "too short")
        yield Probe("x" * 301, "too long")

    plug_in(search)
    round, owner = scene
    run = run_to_its_end(make_adversary(round, owner, "odd"))
    assert (run.ended_by, run.calls) == (End.FINISHED, 0)


def test_a_model_that_is_away_is_asked_again_later(scene):
    round, owner = scene
    target = round.round_targets.get().target
    target.options = {"fail": "down"}
    target.save()
    adversary = make_adversary(round, owner)
    run = start_run(adversary=adversary, actor=owner)
    attack(run.pk)
    run.refresh_from_db()
    assert (run.state, AdversaryTry.objects.get().state) == ("queued", State.WAITING)
    target.options = SCRIPT
    target.save()
    AdversaryRun.objects.update(not_before=None)
    assert work_on(run).ended_by == End.FINISHED
    assert not AdversaryTry.objects.filter(state=State.WAITING).exists()


def test_answers_of_no_use_are_paid_for_too(scene, monkeypatch):
    round, owner = scene

    def write_in_vain(*arguments):
        error = build_unmatched_error("It said “maybe”.")
        error.usage = Usage(100, 5)
        raise TargetFailed("scripted", error)

    monkeypatch.setattr(live_targets, "request_answers_in_time", write_in_vain)
    run = run_to_its_end(make_adversary(round, owner))
    tries = list(run.logged_tries.all())
    assert {(one.state, one.tokens) for one in tries} == {(State.UNANSWERED, 105)}
    assert run.tokens == 105 * len(tries)


def test_the_models_own_budget_ends_a_run(scene, monkeypatch):
    """The cap on the calls of a model holds for adversaries as for people."""
    round, owner = scene
    asked = []

    def check(payer):
        asked.append(payer)
        if len(asked) > 5:
            raise SpentError("Its requests_a_day is used up.", "busy", is_permanent=True)

    monkeypatch.setattr(live_targets, "check_budget", check)
    run = run_to_its_end(make_adversary(round, owner))
    assert (run.state, run.ended_by) == ("done", End.SPENT)
    assert {payer.round_id for payer in asked} == {round.pk}
    assert AdversaryTry.objects.filter(state=State.ANSWERED).count() == 5


def test_a_closed_round_ends_a_run(scene):
    round, owner = scene
    run = start_run(adversary=make_adversary(round, owner), actor=owner)
    Round.objects.update(state="closed")
    assert work_on(run).ended_by == End.CLOSED
    assert not Example.objects.exists()


def test_a_stopped_run_asks_no_more(scene, monkeypatch):
    round, owner = scene
    run = start_run(adversary=make_adversary(round, owner), actor=owner)
    answer, calls = live_targets.request_answers_in_time, []

    def stop_at_the_third(*arguments):
        calls.append(1)
        if len(calls) == 3:
            stop_run(run=run, actor=owner)
        return answer(*arguments)

    monkeypatch.setattr(live_targets, "request_answers_in_time", stop_at_the_third)
    attack(run.pk)
    run.refresh_from_db()
    assert (run.state, run.ended_by, len(calls)) == ("cancelled", End.STOPPED, 3)
    assert start_run(adversary=run.adversary, actor=owner).number == 2


def test_an_adversary_runs_once_at_a_time(scene):
    round, owner = scene
    adversary = make_adversary(round, owner)
    start_run(adversary=adversary, actor=owner)
    with pytest.raises(Refused) as refusal:
        start_run(adversary=adversary, actor=owner)
    assert refusal.value.code == "running"


def test_the_schedule_starts_each_once_a_night(scene, monkeypatch):
    round, owner = scene
    nightly, other = make_adversary(round, owner, is_nightly=True), make_adversary(round, owner)
    monkeypatch.setattr("dynabench.adversaries.jobs.NIGHT_HOURS", range(24))
    assert [start_nightly_adversaries(), start_nightly_adversaries()] == [1, 0]
    assert (nightly.runs.count(), other.runs.count()) == (1, 0)
    set_schedule(adversary=other, actor=owner, is_nightly=True)
    monkeypatch.setattr("dynabench.adversaries.jobs.NIGHT_HOURS", ())
    assert start_nightly_adversaries() == 0
    monkeypatch.setattr("dynabench.adversaries.jobs.NIGHT_HOURS", range(24))
    retire_adversary(adversary=other, actor=owner)
    assert start_nightly_adversaries() == 0


def test_what_is_retired_stops_and_never_starts(scene):
    round, owner = scene
    adversary = make_adversary(round, owner)
    run = start_run(adversary=adversary, actor=owner)
    retire_adversary(adversary=adversary, actor=owner)
    run.refresh_from_db()
    assert run.state == "cancelled"
    with pytest.raises(Refused):
        start_run(adversary=adversary, actor=owner)


def test_people_are_asked_about_what_a_machine_wrote(scene):
    """Its examples wait for votes like everybody's."""
    round, owner = scene
    run_to_its_end(make_adversary(round, owner))
    session = open_session(validator=UserFactory().annotator, task=round.task)
    assert session.lease.example == Example.objects.get()
    assert QueueItem.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "options", "setting"),
    [
        ("search", {"sentences": "gladly | We loved it."}, "sentences"),
        ("search", {"sentences": ""}, "sentences"),
        ("search", {"letters": False, "words": False}, "letters"),
        ("rules", {"templates": "positive The film"}, "templates"),
        ("rules", {"slots": "thing: film"}, "slots"),
    ],
)
def test_wrong_options_are_refused_at_their_setting(scene, kind, options, setting):
    round, owner = scene
    with pytest.raises(Invalid) as refusal:
        make_adversary(round, owner, kind, **options)
    assert refusal.value.field == setting
    assert not Adversary.objects.exists()


def test_rules_find_what_they_test(scene):
    round, owner = scene
    adversary = make_adversary(
        round,
        owner,
        "rules",
        templates="positive | Everyone {felt} the harbour tour.",
        slots="felt = loved, adored",
        invariance="positive | Anna loved the harbour. | loved -> adored, liked",
        direction="negative | The harbour smelled. | We loved nothing about it.",
    )
    run = run_to_its_end(adversary)
    assert run.ended_by == End.FINISHED
    texts = set(Example.objects.values_list("inputs__text", flat=True))
    assert texts == {
        "Everyone adored the harbour tour.",
        "Anna adored the harbour.",
        "Anna liked the harbour.",
        "The harbour smelled. We loved nothing about it.",
    }


def test_tasks_for_people_only_refuse_adversaries(scene):
    round, owner = scene
    round.task.config_text += "\nprograms: {write: false}\n"
    round.task.save()
    with pytest.raises(Refused) as refusal:
        make_adversary(round, owner)
    assert refusal.value.code == "programs"


def test_a_plan_depends_on_the_seed_only(scene):
    plans = []
    for seed in (1, 1, 2):
        options = options_of("search", sentences="\n".join(f"neutral | Day {n}." for n in range(9)))
        attacks = KINDS["search"].plan_attacks(options, ["neutral"], Random(seed))
        plans.append([next(attack.begin({})).text for attack in attacks])
    assert plans[0] == plans[1] != plans[2]


def test_a_run_of_a_person_begins_before_waiting_evaluations(scene):
    """The schedule's runs wait for them, because nobody watches these."""
    round, owner = scene
    by_person = start_run(adversary=make_adversary(round, owner), actor=owner)
    by_schedule = start_run(adversary=make_adversary(round, owner), actor=None)
    enqueue("evaluation.jobs.evaluate_next", uuid4())
    keys = [message.key for message in OrmQ.objects.order_by("pk")]
    assert keys == ["dynabench", SLICE_QUEUE, LONG_QUEUE]
    begin_attack(by_person.pk)
    by_person.refresh_from_db()
    assert by_person.calls > 0
    assert by_schedule.calls == 0


def test_the_first_slice_is_short_and_the_others_follow(scene, monkeypatch):
    round, owner = scene
    monkeypatch.setattr(jobs, "FIRST_SLICE_SECONDS", 1e-9)
    run = start_run(adversary=make_adversary(round, owner), actor=owner)
    begin_attack(run.pk)
    run.refresh_from_db()
    assert (run.state, run.calls) == ("queued", 1)
    assert work_on(run).ended_by == End.FINISHED
