"""Programs that attack through the API: they claim a run, ask one question at a time, end it."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from annotation.attempts import live_targets
from annotation.models import Example, ShownExample
from core.accounts.services import get_annotator
from core.errors import Invalid, Refused
from dynabench.adversaries.board import build_board
from dynabench.adversaries.jobs import attack
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.program_services import (
    ProgramQuestion,
    ProgramSlice,
    ask_for_program,
)
from dynabench.adversaries.services import set_schedule, start_run, stop_run
from evaluation.isolation.queue.leases import sweep_jobs
from tasks.models import Round
from tests.support.adversaries import SCRIPT, give_to, make_adversary, sentiment_round
from tests.support.factories import UserFactory
from validation.judging.services import lease_next

pytestmark = pytest.mark.django_db
FOOLING = {"text": "We adored the small blue boat.", "label": "positive", "step": "by hand"}


@pytest.fixture
def scene():
    """A round, a program's adversary, and the API as the person who runs it."""
    round, owner = sentiment_round()
    person, api = UserFactory(), APIClient()
    adversary = give_to(make_adversary(round, owner, "program", max_calls=20), person)
    api.force_authenticate(person)
    return round, adversary, api


def claim(api, adversary):
    return api.post(f"/api/v1/tasks/sentiment/adversaries/{adversary.pk}/claim/")


def ask(api, token, **question):
    return api.post(f"/api/v1/attacks/{token}/ask/", FOOLING | question, format="json")


def end(api, token):
    return api.post(f"/api/v1/attacks/{token}/end/")


def test_a_program_claims_a_run_asks_and_ends_it(scene):
    _round, adversary, api = scene
    claimed = claim(api, adversary)
    assert claimed.status_code == 201
    assert {*claimed.json()["labels"]} == {"positive", "negative", "neutral"}
    assert claimed.json()["contexts"] == []
    token = claimed.json()["token"]
    right = ask(api, token, text="We loved the small blue boat.").json()
    assert (right["answer"]["state"], right["answer"]["is_fooled"]) == ("answered", False)
    assert right["answer"]["chance"] == pytest.approx(0.8)
    found = ask(api, token).json()
    assert (found["answer"]["state"], found["run"]["calls"]) == ("stored", 3)
    example = Example.objects.get()
    assert str(example.uuid) == found["answer"]["example"]
    assert (example.annotator, example.by_program) == (adversary.annotator, True)
    assert end(api, token).json()["ended_by"] == "finished"
    assert ask(api, token, text="We went home again.").json()["error"]["code"] == "over"


def test_the_same_question_costs_nothing(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    answers = [ask(api, token).json() for _ in range(3)]
    assert [one["run"]["calls"] for one in answers] == [2, 2, 2]
    assert Example.objects.count() == AdversaryTry.objects.count() == 1


@pytest.mark.parametrize("is_logged", [False, True])
def test_nobody_judges_what_their_program_found(scene, is_logged):
    """Neither who asked, nor who got the logged answer; everybody else does."""
    round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    ask(api, token)
    if is_logged:
        ShownExample.objects.all().delete()
        ask(api, token)
    person = get_annotator(adversary.program_user)
    assert lease_next(validator=person, task=round.task) is None
    other = get_annotator(UserFactory())
    assert lease_next(validator=other, task=round.task).example == Example.objects.get()


def test_what_only_measures_is_never_submitted(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    asked = ask(api, token, text="Boat", is_offered=False).json()
    assert (asked["answer"]["state"], asked["answer"]["is_fooled"]) == ("answered", True)
    assert not Example.objects.exists()


def test_what_measured_first_counts_as_a_try_that_people_got(scene):
    round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    ask(api, token, is_offered=False)
    ask(api, token, text="We loved the small blue boat.", is_offered=False)
    assert ask(api, token).json()["answer"]["state"] == "stored"
    assert AdversaryTry.objects.get(text=FOOLING["text"]).is_offered
    assert build_board(round.task)[0].tries == 2


def test_a_question_reads_one_text_and_examples_take_turns(scene):
    """However many texts the round has."""
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    for word in ("red", "green", "tiny"):
        ask(api, token, text=f"We adored the {word} boat.")
    assert len(set(Example.objects.values_list("context", flat=True))) == 3
    slice = ProgramSlice(AdversaryRun.objects.get(), ProgramQuestion("", ""), closes_all=False)
    assert len(slice._contexts) == 1


@pytest.mark.parametrize(
    ("budget", "ended_by"),
    [({"max_calls": 3}, "calls"), ({"max_examples": 1}, "examples"), ({"max_cost": 0}, "cost")],
)
def test_a_budget_ends_its_run(scene, budget, ended_by):
    round, _adversary, api = scene
    adversary = give_to(make_adversary(round, None, "program", **budget), api.handler._force_user)
    token = claim(api, adversary).json()["token"]
    told = [ask(api, token, text=f"We adored boat number {n}.").json() for n in "ABCD"]
    ends = [one.get("run", one.get("error")) for one in told]
    assert ended_by in {one.get("ended_by") for one in ends}
    assert ends[-1]["code"] == "over"
    run = AdversaryRun.objects.get()
    assert run.calls <= run.max_calls
    assert run.examples <= run.max_examples


def test_time_passes_between_questions(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    AdversaryRun.objects.update(started_at=timezone.now() - timedelta(hours=2))
    told = ask(api, token).json()
    assert (told["answer"], told["run"]["ended_by"]) == (None, "minutes")


def test_a_program_that_dies_ends_its_run(scene):
    """Its lease ends, and the worker that then gets the run says so."""
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    ask(api, token)
    run = AdversaryRun.objects.get()
    assert run.lease_until > timezone.now() + timedelta(minutes=9)
    AdversaryRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    sweep_jobs()
    attack(run.pk)
    run.refresh_from_db()
    assert (run.state, run.ended_by) == ("done", "gone")
    assert ask(api, token, text="Is anybody there now?").status_code == 404
    assert claim(api, adversary).json()["number"] == 2


def test_a_question_that_dies_is_lost_and_the_program_goes_on(scene, monkeypatch):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    answer = live_targets.request_answers_in_time

    def die(*arguments):
        raise SystemExit

    monkeypatch.setattr(live_targets, "request_answers_in_time", die)
    run, question = AdversaryRun.objects.get(), ProgramQuestion(FOOLING["text"], "positive")
    with pytest.raises(SystemExit):
        ask_for_program(run=run, question=question)
    monkeypatch.setattr(live_targets, "request_answers_in_time", answer)
    assert ask(api, token, text="We adored the other boat.").json()["answer"]["state"] == "stored"
    lost = ask(api, token).json()
    assert (lost["answer"]["state"], lost["run"]["calls"]) == ("lost", 3)


def test_one_question_is_asked_at_a_time(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    AdversaryRun.objects.update(asking_until=timezone.now() + timedelta(minutes=1))
    assert ask(api, token).json()["error"]["code"] == "asking"
    AdversaryRun.objects.update(asking_until=F("asking_until") - timedelta(hours=1))
    assert ask(api, token).status_code == 200


def test_a_run_is_claimed_once_at_a_time(scene):
    _round, adversary, api = scene
    claim(api, adversary)
    assert claim(api, adversary).json()["error"]["code"] == "running"


def test_an_owner_stops_it(scene):
    round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    stop_run(run=AdversaryRun.objects.get(), actor=round.task.members.get().user)
    assert ask(api, token).status_code == end(api, token).status_code == 404


def test_a_closed_round_ends_it(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    Round.objects.update(state="closed")
    assert ask(api, token).json()["run"]["ended_by"] == "closed"


def test_a_model_that_is_away_can_be_asked_again(scene):
    round, adversary, api = scene
    target = round.round_targets.get().target
    target.options = {"fail": "down"}
    target.save()
    token = claim(api, adversary).json()["token"]
    assert ask(api, token).status_code == 503
    target.options = SCRIPT
    target.save()
    assert ask(api, token).json()["answer"]["state"] == "stored"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"label": "gladly"}, "label"),
        ({"text": "Short"}, "text"),
        ({"text": ""}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"context": 0}, "context"),
    ],
)
def test_what_nobody_could_write_is_refused_and_costs_nothing(scene, change, field):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    refused = ask(api, token, **change)
    assert refused.status_code == 422
    assert field in refused.json()["error"]["fields"]
    assert AdversaryRun.objects.get().calls == 0
    assert ask(api, token).status_code == 200


def test_only_its_account_and_editors_run_it(scene):
    _round, adversary, api = scene
    token = claim(api, adversary).json()["token"]
    stranger = APIClient()
    stranger.force_authenticate(UserFactory())
    assert claim(stranger, adversary).status_code == 404
    assert ask(stranger, token).status_code == end(stranger, token).status_code == 404
    assert ask(api, uuid4()).status_code == 404
    owner = APIClient()
    owner.force_authenticate(adversary.made_by)
    assert ask(owner, token).status_code == 200


def test_other_kinds_are_not_claimed_and_programs_not_started(scene):
    round, adversary, api = scene
    search = give_to(make_adversary(round, None), api.handler._force_user)
    assert claim(api, search).json()["error"]["code"] == "program"
    with pytest.raises(Refused) as refusal:
        start_run(adversary=adversary, actor=None)
    assert refusal.value.code == "program"
    with pytest.raises(Refused):
        set_schedule(adversary=adversary, actor=adversary.made_by, is_nightly=True)


def test_its_account_is_named_by_address(scene):
    round, adversary, _api = scene
    person, owner = UserFactory(), adversary.made_by
    made = make_adversary(round, owner, "program", account=person.email)
    assert made.program_user == person
    assert person.email not in str(made.options)
    for wrong in ({"account": "nobody@example.com"}, {"is_nightly": True}):
        with pytest.raises((Invalid, Refused)):
            make_adversary(round, owner, "program", **wrong)


def test_the_page_says_how_a_program_runs(scene, client):
    _round, adversary, _api = scene
    client.force_login(adversary.made_by)
    page = client.get(f"/own/sentiment/adversaries/{adversary.pk}/")
    content = page.content.decode()
    assert 'id="program"' in content
    assert 'id="start"' not in content
    assert adversary.program_user.annotator.pseudonym in content
    assert adversary.program_user.email not in content
