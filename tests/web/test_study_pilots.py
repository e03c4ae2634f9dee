"""Pilots of studies in which people write: copies of their arms, which count nowhere."""

import json
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import ProtectedError
from django.test import Client
from django.utils import timezone

from annotation.models import Example, Suggestion
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator
from core.errors import Refused
from dynabench.campaigns.models import Campaign, LedgerRow, Payment, Place
from dynabench.notices.facts import find_due_notices
from dynabench.operations.demo.services import remove_demo
from dynabench.studies import pilot_judge_services, pilot_services
from dynabench.studies.models import Pilot, Study, StudyDraw
from dynabench.studies.pilot_copy_services import copy_study, find_pilot_problem
from dynabench.studies.pilot_judge_services import judge_examples
from dynabench.studies.pilot_selectors import summarise_pilot
from dynabench.studies.pilot_services import delete_pilot, start_pilot
from dynabench.studies.rules.starter import write_starter_plan
from dynabench.studies.services import change_study, freeze_study, make_study
from dynabench.studies.setup_services import set_up_study
from evaluation.jobs import turn_closed_rounds_into_runs
from evaluation.models import Dataset, EvaluationSet
from tasks.config.parsing import dump_yaml
from tasks.making.services import delete_unopened_task
from tasks.models import (
    SIMULATED_TASK_CODE,
    Generator,
    ModelUse,
    Round,
    RoundTarget,
    TargetModel,
    Task,
    TaskMember,
)
from tasks.questions import is_rehearsed
from tasks.rounds.loop import RoundError
from tasks.rounds.states import set_round_state
from tasks.services import OFFICIAL_FOLDER, change_task
from tests.support.campaigns import open_campaign
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.judging import answered, write
from tests.support.studies import PLAN, plan_study
from tests.support.study_drafts import work_off
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db
PASSAGE = "Nora opened the small shop at nine, and her brother brought bread at ten."
FOLDER = Path(__file__).parents[2] / "docs/studies"
COUNTED = (User, Annotator, Task, Campaign, Place, StudyDraw, Study, Example, Validation)
COUNTED += (Consensus, TargetModel, RoundTarget, ModelUse, LedgerRow, Payment, Suggestion)


def count_rows():
    return {model: model.objects.count() for model in COUNTED}


def plan_writing(each=2, **campaign):
    """The starter plan of the owners' pages: people write, in one arm with suggestions."""
    plan = write_starter_plan("starter", ["arm-alone", "arm-helped"])
    pay = {"pay_task": 100, "pay_accepted": 30, "pay_bonus": 50, "fee_percent": 10}
    study, owner, rounds = plan_study(plan, each=each, **pay | campaign)
    for round in rounds:
        scripted_target(round, name="model", label="neutral")
    helped = rounds[1].task
    helped.config_text = helped.config_text.replace("support:\n", "support:\n  suggestions: true\n")
    helped.save()
    Generator.objects.create(
        task=helped, name="helper", adapter="scripted", url="http://scripted.test",
        options={"label": "A person came to the shop before anyone else."},
    )  # fmt: skip
    return study, owner, rounds


def play(study, owner, people=5):
    pilot = start_pilot(study=study, actor=owner, people=people)
    work_off()
    pilot.refresh_from_db()
    return pilot


def store_done_pilot(study, owner):
    """A pilot that is over, in which nobody took part: quick, for what only needs its copies."""
    copy = copy_study(study=study, actor=owner, places=1)
    return Pilot.objects.create(
        study=study, people=1, requested_by=owner, state=Pilot.State.DONE, rehearsal=copy
    )


def test_five_simulated_people_write_and_others_judge():
    study, owner, _rounds = plan_writing()
    pilot = play(study, owner)
    assert (pilot.state, pilot.error) == ("done", "")
    rehearsal = pilot.rehearsal
    places = Place.objects.filter(campaign__study_arm__study=rehearsal)
    assert {place.state for place in places} == {"submitted"}
    assert places.count() == StudyDraw.objects.count() == 5
    # Their texts were answered by the copied models, as people's are.
    examples = Example.objects.all()
    assert examples.count() == 10
    assert not examples.filter(target_outputs=None).exists()
    assert not examples.filter(outcome__in=("no_model", "undecided")).exists()
    # Who was helped used a suggestion, and wrote something of their own after it.
    helped = examples.filter(round__task__config_text__contains="suggestions")
    assert {example.support["suggestion"] for example in helped} == {"edit"}
    assert Suggestion.objects.count() == helped.count()
    # Judges have voted on whatever the queue gave them.
    assert Validation.objects.exists()
    assert not Validation.objects.exclude(example__in=examples).exists()
    # Each outcome is there, and pay is computed without a row of the ledger.
    summaries = {summary.name: summary for summary in summarise_pilot(pilot)}
    assert sum(summary.submitted for summary in summaries.values()) == 5
    for summary in summaries.values():
        assert summary.means.keys() == {"catches", "valid_examples"}
        assert summary.means["catches"] is not None
        assert summary.cost >= 110 * summary.submitted
        assert summary.expected_cost == round(summary.cost / summary.submitted * 100)
        # Two texts at about a minute and a half.
        assert 0.2 < summary.minutes < 30
    assert not LedgerRow.objects.exists()
    assert not Payment.objects.exists()
    # The page and the API say the same.
    client = Client()
    client.force_login(owner)
    page = client.get(f"/own/alone/studies/{study.code}/")
    assert page.status_code == 200
    assert [arm.name for arm in page.context["pilot_arms"]] == ["alone", "helped"]
    arms = client.get(f"/api/v1/tasks/alone/studies/{study.code}/pilot/").json()["arms"]
    assert [arm["expected_cost"] for arm in arms] == [
        summaries[name].expected_cost for name in ("alone", "helped")
    ]


def test_nothing_of_a_pilot_is_in_the_study():
    study, owner, rounds = plan_writing()
    freeze_study(study=study, actor=owner)
    play(study, owner, people=2)
    tasks = [round.task for round in rounds]
    assert not Example.objects.filter(round__task__in=tasks).exists()
    assert not StudyDraw.objects.filter(arm__study=study).exists()
    assert not Place.objects.filter(campaign__task__in=tasks).exists()
    # Its models have budgets of their own.
    assert not ModelUse.objects.filter(target__task__in=tasks).exists()
    client = Client()
    client.force_login(owner)
    report = client.get(f"/own/alone/studies/{study.code}/report.json").json()
    assert [arm["drawn"] for arm in report["arms"].values()] == [0, 0]
    assert not report["is_simulated"]
    # Nobody else sees it: no page, no judging, no number.
    copy = Pilot.objects.get().rehearsal.task
    stranger = Client()
    stranger.force_login(UserFactory())
    for path in ("", "judge/", "leaderboard/", "write/"):
        assert stranger.get(f"/t/{copy.code}/{path}").status_code in (403, 404)
    assert copy.code not in stranger.get("/tasks/").text
    # Paused, and never closed: a closed round would become a test set.
    copied_rounds = Round.objects.exclude(task__in=tasks)
    assert set(copied_rounds.values_list("state")) == {("paused",)}
    with pytest.raises(RoundError):
        set_round_state(round=copied_rounds.first(), state="closed", actor=owner)
    # Nor does anybody show it to others, and no test set and no run came of it.
    with pytest.raises(Refused):
        change_task(task=copy, actor=owner, fields={"is_visible": True})
    turn_closed_rounds_into_runs()
    assert not EvaluationSet.objects.exists()
    assert not Dataset.objects.exists()
    # What waits for votes in it is told to nobody.
    assert not find_due_notices(timezone.now() + timedelta(days=30))
    # The real task's export has no row of it, and its numbers are those of nobody.
    client.force_login(owner)
    assert client.get("/api/v1/tasks/alone/rounds/1/examples/").json()["results"] == []
    copied_rows = client.get(f"/api/v1/tasks/{copy.code}/rounds/1/examples/").json()["results"]
    assert len(copied_rows) == copy.rounds.get().examples.count()


def test_a_deleted_pilot_leaves_no_row():
    study, owner, _rounds = plan_writing()
    before = count_rows()
    play(study, owner, people=2)
    assert Validation.objects.exists()
    delete_pilot(study=study, actor=owner)
    assert count_rows() == before
    assert not Pilot.objects.exists()


@pytest.mark.parametrize("stops_at", ["writing", "judging"])
def test_a_killed_pilot_goes_on_without_doubling(monkeypatch, stops_at):
    study, owner, _rounds = plan_writing()
    name = "play_people" if stops_at == "writing" else "judge_examples"
    real = getattr(pilot_services, name)

    def stop(*arguments):
        for number, step in enumerate(real(*arguments)):
            if number == 5:
                raise ConnectionError
            yield step

    monkeypatch.setattr(pilot_services, name, stop)
    pilot = play(study, owner, people=2)
    assert pilot.state == "queued"
    monkeypatch.setattr(pilot_services, name, real)
    Pilot.objects.update(not_before=None)
    work_off()
    pilot.refresh_from_db()
    assert (pilot.state, pilot.error) == ("done", "")
    assert (Place.objects.count(), StudyDraw.objects.count(), Example.objects.count()) == (2, 2, 4)
    # Nobody judges an example twice, and a judge is one account.
    votes = list(Validation.objects.values_list("example", "validator"))
    assert len(votes) == len(set(votes))
    assert Study.objects.filter(pilot_of__isnull=False).count() == 1


def test_a_model_that_is_down_ends_a_pilot_and_the_error_names_the_step():
    study, owner, rounds = plan_writing()
    TargetModel.objects.filter(task=rounds[0].task).update(options={"fail": "down"})
    pilot = play(study, owner)
    assert pilot.state == "failed"
    assert "Asking the models" in pilot.error
    assert not Example.objects.exists()
    delete_pilot(study=study, actor=owner)
    # In the middle, when the copied model stops.
    TargetModel.objects.update(options={"label": "neutral"})
    real = pilot_services.play_people

    def stop(study, names, crowd):
        for step in real(study, names, crowd):
            if step.person == 2:
                TargetModel.objects.update(options={"fail": "down"})
            yield step

    pilot_services.play_people = stop
    try:
        pilot = play(study, owner)
    finally:
        pilot_services.play_people = real
    assert pilot.state == "failed"
    assert "Person 2" in pilot.error
    assert "example 1 of 2" in pilot.error


def test_people_within_a_study_write_in_each_arm():
    plan = PLAN.replace("between", "within").replace("people: 40", "people: 20")
    study, owner, rounds = plan_study(plan, each=2)
    # A judge model that draws a sample has no part in a pilot, so that no example waits for it.
    task = rounds[0].task
    task.config_text = task.config_text.replace(
        "validation: {mode", "validation: {sample: {judge: reader}, mode"
    )
    task.save()
    assert task.config.validation.sample is not None
    for round in rounds:
        scripted_target(round, name="model", label="neutral")
    pilot = play(study, owner, people=2)
    assert (pilot.state, pilot.error) == ("done", "")
    counts = [summary.examples for summary in summarise_pilot(pilot)]
    assert counts == [4, 4]
    assert StudyDraw.objects.count() == 4


def test_a_study_that_cannot_be_tried_says_why():
    study, owner, rounds = plan_writing()
    client = Client()
    client.force_login(owner)
    page = client.get(f"/own/alone/studies/{study.code}/").text
    assert 'id="start-pilot"' in page
    campaign = Campaign.objects.get(slug="arm-helped")
    for changes in ({"kind": "judge"}, {"kind": "both"}, {"kind": "arena"}):
        Campaign.objects.filter(pk=campaign.pk).update(**changes)
        assert "helped" in find_pilot_problem(study)
    Campaign.objects.filter(pk=campaign.pk).update(kind="write")
    assert find_pilot_problem(study) == ""
    for changes in ({"arm_shares": {"people": 1, "machines": 1}}, {"state": "closed"}):
        Round.objects.filter(pk=rounds[1].pk).update(**changes)
        assert find_pilot_problem(study)
    page = client.get(f"/own/alone/studies/{study.code}/").text
    assert 'id="start-pilot"' not in page
    assert 'id="no-pilot"' in page
    client.post(f"/own/alone/studies/{study.code}/pilot/", {"do": "start"})
    assert not Pilot.objects.exists()


def test_only_owners_of_all_arms_start_a_pilot():
    study, _owner, rounds = plan_writing()
    helper = UserFactory()
    TaskMember.objects.create(task=rounds[0].task, user=helper, role="owner")
    client = Client()
    for user in (helper, UserFactory()):
        client.force_login(user)
        client.post(f"/own/alone/studies/{study.code}/pilot/", {"do": "start"})
    assert not Pilot.objects.exists()


def list_writing_plans():
    """The plans of the docs whose arms are campaigns that somebody has made."""
    return [path for path in sorted(FOLDER.glob("*.yaml")) if "setup:" not in path.read_text()]


@pytest.mark.parametrize("path", list_writing_plans(), ids=lambda path: path.stem)
def test_each_plan_of_the_docs_goes_from_template_to_pilot(path):
    data = yaml.safe_load(path.read_text())
    _study, owner, rounds = plan_study()
    scripted_target(rounds[0], name="model", label="neutral")
    # All arms share one task, as arms that differ in pay or time do.
    for arm in data["arms"]:
        slug = f"plan-{arm['name']}".replace("_", "-")
        open_campaign(rounds[0].task, slug=slug, each=1, places=20)
        arm["campaign"] = slug
    own_study = make_study(task=rounds[0].task, actor=owner, plan_text=yaml.safe_dump(data))
    pilot = play(own_study, owner, people=1)
    assert (pilot.state, pilot.error) == ("done", "")
    assert sum(summary.submitted for summary in summarise_pilot(pilot)) == (
        len(data["arms"]) if data["design"] == "within" else 1
    )


@pytest.mark.parametrize("code", ["grounded", "secret", "hate-speech", "vqa"])
def test_simulated_people_work_in_each_official_task(code):
    config_text = (OFFICIAL_FOLDER / code / "task.yaml").read_text()
    study, owner, rounds = plan_study(each=1)
    for round in rounds:
        Task.objects.filter(pk=round.task_id).update(config_text=config_text)
        round.contexts.all().delete()
        round.task.refresh_from_db()
        config = round.task.config
        fields = {c.name: PASSAGE for c in config.context if c.kind.is_text}
        ContextFactory(round=round, fields=fields)
        # Any answer that such a task takes from a model.
        field = config.get_component(config.answer_field)
        label = field.values[0] if field.values else "shop"
        scripted_target(round, name="model", label=label)
    pilot = play(study, owner, people=1)
    assert (pilot.state, pilot.error) == ("done", "")
    examples = Example.objects.all()
    assert examples.count() == 1
    assert not examples.filter(outcome__in=("no_model", "undecided")).exists()
    delete_pilot(study=study, actor=owner)
    assert not Example.objects.exists()


def test_a_setup_of_a_writing_task_goes_from_one_file_to_a_pilot():
    task = yaml.safe_load((OFFICIAL_FOLDER / "nli" / "task.yaml").read_text())
    plan = yaml.safe_load((FOLDER / "instructions-within.yaml").read_text())
    model = {"adapter": "scripted", "url": "http://scripted.test", "options": {"label": "neutral"}}
    for arm in plan["arms"]:
        arm |= {"model": model, "instructions": f"Write a sentence. {arm['differs']}."}
    plan["size"] |= {"each": 1, "contexts": 20}
    plan["setup"] = {"task": task, "campaign": {"consent": "Yes.", "ethics": "No harm."}}
    lines = [json.dumps({"premise": f"Person {n} opened the shop at nine."}) for n in range(20)]
    owner = UserFactory()
    study = set_up_study(
        plan_text=dump_yaml(plan),
        cases="\n".join(lines).encode(),
        file_name="cases.jsonl",
        actor=owner,
        is_approved=True,
    )
    pilot = play(study, owner, people=1)
    assert (pilot.state, pilot.error) == ("done", "")
    copies = [arm.campaign.task for arm in pilot.rehearsal.arms.all()]
    assert [copy.config.instructions for copy in copies] == [
        arm["instructions"] for arm in plan["arms"]
    ]
    assert Example.objects.filter(round__task__in=copies).count() == 2


def test_a_pilot_copies_nothing_of_a_task_that_its_actor_no_longer_owns():
    study, owner, rounds = plan_writing()
    pilot = start_pilot(study=study, actor=owner, people=1)
    # Another owner takes the role away before a worker comes to the pilot.
    TaskMember.objects.filter(task=rounds[1].task, user=owner).delete()
    before = count_rows()
    work_off()
    pilot.refresh_from_db()
    assert (pilot.state, pilot.rehearsal) == ("failed", None)
    assert count_rows() == before


def test_a_pilot_of_arms_that_were_renamed_shows_the_others():
    study, owner, _rounds = plan_writing()
    store_done_pilot(study, owner)
    client = Client()
    client.force_login(owner)
    for old, new, left in (("helped", "aided", ["alone"]), ("alone", "unaided", [])):
        plan_text = study.plan_text.replace(f": {old}", f": {new}")
        change_study(study=study, actor=owner, plan_text=plan_text)
        study.refresh_from_db()
        page = client.get(f"/own/alone/studies/{study.code}/")
        assert page.status_code == 200
        assert [arm.name for arm in page.context["pilot_arms"]] == left
        assert ("expected cost" in page.text.lower()) is bool(left)
        answer = client.get(f"/api/v1/tasks/alone/studies/{study.code}/pilot/")
        assert [arm["name"] for arm in answer.json()["arms"]] == left


@pytest.mark.parametrize("agrees", [True, False])
@pytest.mark.parametrize("code", ["grounded", "secret", "nli"])
def test_judges_confirm_catches_whoever_decided_them(monkeypatch, code, agrees):
    monkeypatch.setattr(pilot_judge_services, "VALID_SHARE", 1 if agrees else 0)
    study, owner, rounds = plan_study()
    config_text = (OFFICIAL_FOLDER / code / "task.yaml").read_text()
    Task.objects.filter(pk=rounds[0].task_id).update(config_text=config_text)
    task = store_done_pilot(study, owner).rehearsal.task
    Round.objects.update(state="open")
    round = task.rounds.get()
    author = UserFactory()
    for number in range(2):
        write(round, author, number, outcome="fooled")
    for _step in judge_examples(Study.objects.get(pilot_of__isnull=False), Random(1)):
        pass
    decisions = Consensus.objects.filter(round=round)
    assert (
        list(decisions.values_list("state", "is_verified", "is_validated_error"))
        == [("decided", agrees, agrees)] * 2
    )


def test_tasks_and_studies_of_a_pilot_stay_until_it_is_deleted():
    study, owner, rounds = plan_writing()
    Round.objects.filter(pk__in=[round.pk for round in rounds]).update(state="draft")
    pilot = store_done_pilot(study, owner)
    client = Client()
    client.force_login(owner)
    # The copies' rounds have not opened either, as if the copied models did not answer.
    for code in (study.task.code, pilot.rehearsal.task.code):
        with pytest.raises(Refused) as refusal:
            delete_unopened_task(task=Task.objects.get(code=code), actor=owner)
        assert refusal.value.code == "used"
        client.post(f"/own/{code}/delete/")
    # Nor by any other way than the service.
    for row in (study, pilot.rehearsal, study.task):
        with pytest.raises(ProtectedError), transaction.atomic():
            row.delete()
    pilot.refresh_from_db()
    assert {pilot.study, pilot.rehearsal} == set(Study.objects.all())
    assert is_rehearsed(pilot.rehearsal.task)
    delete_pilot(study=study, actor=owner)
    delete_unopened_task(task=study.task, actor=owner)
    assert list(Task.objects.all()) == [rounds[1].task]


def test_the_demo_stays_while_a_study_of_it_has_a_pilot():
    study, owner, _rounds = plan_writing()
    Pilot.objects.create(study=study, people=1, requested_by=owner)
    Task.objects.filter(pk=study.task_id).update(code=SIMULATED_TASK_CODE)
    with pytest.raises(Refused):
        remove_demo(owner)
    with pytest.raises(CommandError):
        call_command("forget_demo")
    assert Pilot.objects.exists()


def test_a_pilot_prices_models_in_the_currency_of_the_study():
    study, owner, _rounds = plan_writing(currency="JPY", machine_hour=700)
    pilot = store_done_pilot(study, owner)
    copy = pilot.rehearsal.arms.select_related("campaign").first().campaign
    assert (copy.currency, copy.machine_hour) == ("JPY", 700)
    person, now = UserFactory(), timezone.now()
    Place.objects.create(
        campaign=copy,
        annotator=get_annotator(person),
        state="submitted",
        began_at=now - timedelta(minutes=1),
        submitted_at=now + timedelta(minutes=1),
        expires_at=now + timedelta(hours=1),
    )
    round = copy.rounds.get()
    answered(write(round, person))
    # Prices of tokens are in whole money, and a yen has no smaller unit.
    target = TargetModel.objects.get(targetoutput__example__round=round)
    TargetModel.objects.filter(pk=target.pk).update(options={"price_out": 1})
    ModelUse.objects.create(target=target, round=round, day=now.date(), cost=250)
    assert summarise_pilot(pilot)[0].cost == 110 + 250


def test_each_owner_of_a_study_sees_what_its_pilot_tells():
    study, owner, rounds = plan_writing()
    store_done_pilot(study, owner)
    helper = UserFactory()
    for round in rounds:
        TaskMember.objects.create(task=round.task, user=helper, role="owner")
    client = Client()
    client.force_login(helper)
    page = client.get(f"/own/alone/studies/{study.code}/")
    arms = client.get(f"/api/v1/tasks/alone/studies/{study.code}/pilot/").json()["arms"]
    shown = [arm.name for arm in page.context["pilot_arms"]]
    assert shown == [arm["name"] for arm in arms] == ["alone", "helped"]
    # Yet not the copies, which are only the actor's.
    assert "rehearsal" not in page.context
