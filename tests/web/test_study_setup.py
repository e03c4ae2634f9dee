"""A study set up from a file by configuration alone, run with simulated people, and reported."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from core.errors import Invalid
from dynabench.campaigns.models import Campaign, Place
from dynabench.studies.model_alone_services import MAX_TRIES, ask_models_alone
from dynabench.studies.models import ModelAlone, Study, StudyDraw
from dynabench.studies.rules.bundle import find_bundle_problems
from dynabench.studies.services import change_study, get_campaign_slug
from dynabench.studies.setup_services import open_study, set_up_study
from tasks.models import Task
from tests.support.factories import UserFactory
from tests.support.studies import arrive

pytestmark = pytest.mark.django_db
FOLDER = Path(__file__).parents[2] / "docs/studies"
PLAN, CASES = FOLDER / "four-arms.yaml", FOLDER / "four-arms-cases.jsonl"


@pytest.fixture
def four_arms():
    """The study with four arms from the files of the docs, open for people."""
    owner = UserFactory()
    call_command("set_up_study", PLAN, CASES, owner=owner.email, open="Dr Ito")
    return Study.objects.get()


def get_arm_task(study, name):
    """The task of an arm, whose code says nothing of the arm."""
    task = study.arms.get(name=name).campaign.task
    assert name not in task.code
    return task


def set_up(plan_text=None, cases=None):
    """A study of these files, not opened."""
    return set_up_study(
        plan_text=plan_text or PLAN.read_text(),
        cases=cases or CASES.read_bytes(),
        file_name="cases.jsonl",
        actor=UserFactory(),
        is_approved=True,
    )


def test_the_study_with_four_arms_runs_from_its_file(four_arms, tmp_path, capsys):
    assert (four_arms.state, four_arms.arms.count()) == ("frozen", 4)
    # The control has no model, no conversation and no word about one.
    control = get_arm_task(four_arms, "control")
    assert control.config.talk is None
    assert not control.targets.exists()
    call_command("simulate_people", four_arms.code, people=8, base=0.5, gain=0.5, seed=1)
    assert ask_models_alone() == 30
    capsys.readouterr()
    path = tmp_path / "bundle.zip"
    call_command("study_report", four_arms.code, "--json", "--bundle", str(path))
    report = json.loads(capsys.readouterr().out)
    for name, arm in report["arms"].items():
        assert arm["drawn"] == arm["submitted"] == 2
        # Who has a model is always right here.
        assert name == "control" or arm["means"]["right_answers"] == 1
        assert arm["means"]["confidence"] is not None
    alone = {name: arm["model_alone"] for name, arm in report["arms"].items()}
    assert alone["control"] is None
    # Half of the claims are true.
    assert (alone["model_a"]["asked"], alone["model_a"]["right"]) == (10, 5)
    assert alone["model_b"]["right"] == 5
    assert alone["model_c"]["right"] == 0
    assert find_bundle_problems(path.open("rb")) == []
    call_command("study_report", four_arms.code)
    assert "model_a: the model alone" in capsys.readouterr().out
    # A person has talked to the arm's model, or to none.
    for example in Example.objects.all():
        assert ("talk" in example.inputs) == bool(example.target_outputs.count())
    assert Place.objects.filter(state="submitted").count() == 8


def test_a_model_alone_is_asked_about_each_case_once(four_arms):
    arms = four_arms.arms
    model = get_arm_task(four_arms, "model_a").targets.get()
    model.options = {"fail": "down"}
    model.save()
    for _ in range(MAX_TRIES + 1):
        ask_models_alone()
    broken = ModelAlone.objects.filter(arm=arms.get(name="model_a"))
    # One case in each run. Then the breaker spares the model, and what it refuses is no try.
    rows = list(broken.values_list("failure", "tries", "is_right"))
    assert rows == [("down", MAX_TRIES, False), ("down", 0, False)]
    whole = ModelAlone.objects.filter(arm=arms.get(name="model_b"))
    for _ in range(2):
        ask_models_alone()
    assert whole.count() == 40
    assert set(whole.values_list("tries", flat=True)) == {1}


def test_a_slow_or_spent_model_loses_no_case(four_arms, settings):
    settings.LIVE_WAIT_SECONDS = 0.01
    model = get_arm_task(four_arms, "model_a").targets.get()
    model.options |= {"delay": 0.2}
    model.save()
    spent = get_arm_task(four_arms, "model_b").targets.get()
    spent.options |= {"requests_a_day": 0}
    spent.save()
    # The time is over before the first case.
    assert ask_models_alone(max_seconds=0) == 0
    assert ask_models_alone() == 20
    rows = ModelAlone.objects.filter(arm__name="model_b")
    assert list(rows.values_list("failure", "tries")) == [("spent", 0)]


@pytest.mark.parametrize("key", ["true", {}, {"absent": 1}])
def test_a_case_without_a_usable_key_costs_no_call(four_arms, key):
    task = get_arm_task(four_arms, "model_a")
    bad = task.rounds.get().contexts.order_by("pk").first()
    bad.metadata = {"key": key}
    bad.save()
    ask_models_alone()
    assert not ModelAlone.objects.filter(context=bad).exists()
    assert ModelAlone.objects.filter(arm__name="model_b").count() == 10


def test_neither_a_name_nor_a_code_tells_the_arm(four_arms, settings):
    codes = {}
    for arm in four_arms.arms.select_related("campaign__task"):
        round = arm.campaign.task.rounds.get()
        assert not round.show_target_name
        codes[arm.name] = arm.campaign.slug
        assert round.targets.exclude(name="model").count() == 0
    # Another site has other codes for the same names, and a site with a new key keeps its own.
    plan = four_arms.plan
    old_key, settings.SECRET_KEY = settings.SECRET_KEY, "another key " * 5
    assert all(get_campaign_slug(plan, arm) != codes[arm.name] for arm in plan.arms)
    settings.SECRET_KEY_FALLBACKS = [old_key]
    assert all(get_campaign_slug(plan, arm) == codes[arm.name] for arm in plan.arms)


def test_simulated_people_never_mix_with_people(four_arms):
    arrive(four_arms, 1)
    with pytest.raises(CommandError):
        call_command("simulate_people", four_arms.code, people=1)
    assert StudyDraw.objects.count() == 1


@pytest.mark.parametrize("options", [{"people": 0}, {"base": 0.9, "gain": 0.2}, {"base": -0.1}])
def test_impossible_people_are_refused(four_arms, options):
    with pytest.raises(CommandError):
        call_command("simulate_people", four_arms.code, **options)


def test_what_cannot_be_set_up_leaves_nothing():
    plan = PLAN.read_text()
    mistakes = [
        # Too few cases, a bad line, no setup, and an arm of another study's code.
        {"cases": b"\n".join(CASES.read_bytes().splitlines()[:39])},
        {"cases": CASES.read_bytes() + b'{"text": "No claim."}\n'},
        {"cases": CASES.read_bytes() + b'{"claim": "No key."}\n'},
        {"cases": CASES.read_bytes() + b'{"claim": "A", "metadata": {"key": {"absent": 1}}}\n'},
        {"plan_text": plan[: plan.index("setup:")].replace("    model:", "    #")},
        {"plan_text": plan.replace("fields: [answer]", "fields: [absent]")},
        {"plan_text": plan.replace("minimum: 1", "lowest: 1")},
        {"plan_text": plan.replace("study: help", f"study: {'long-' * 5}help")},
        {"plan_text": plan.replace("{name: control,", "{name: control, campaign: mine,")},
        {"plan_text": plan[: plan.index("setup:")]},
    ]
    for mistake in mistakes:
        with pytest.raises(Invalid):
            set_up(**mistake)
    assert not Study.objects.exists()
    assert not Task.objects.filter(code__startswith="help-with").exists()
    assert not Campaign.objects.exists()


def test_a_study_opens_in_steps_and_once():
    study = set_up()
    with pytest.raises(Invalid):
        open_study(study=study, actor=study.task.made_by, ethics_name="")
    open_study(study=study, actor=study.task.made_by, ethics_name="Dr Ito")
    study.refresh_from_db()
    frozen_at = study.frozen_at
    open_study(study=study, actor=study.task.made_by, ethics_name="Dr Ito")
    study.refresh_from_db()
    assert study.frozen_at == frozen_at
    assert set(Campaign.objects.values_list("state", flat=True)) == {"open"}


def test_the_same_command_goes_on():
    owner = UserFactory()
    names = {"owner": owner.email}
    # A draft, or what a refusal left of it, is opened by the command that made it.
    call_command("set_up_study", PLAN, CASES, **names)
    call_command("set_up_study", PLAN, CASES, open="Dr Ito", **names)
    assert Study.objects.get().state == "frozen"
    assert set(Campaign.objects.values_list("state", flat=True)) == {"open"}
    # Without --open it is another study, whose code is taken.
    with pytest.raises(CommandError):
        call_command("set_up_study", PLAN, CASES, **names)


def test_a_draft_keeps_what_was_made_of_its_plan():
    study = set_up()
    owner, text = study.task.made_by, study.plan_text
    for old, new in [("Nobody knows.", "Yes."), ("max_turns: 10", "max_turns: 9")]:
        assert old in text
        with pytest.raises(Invalid):
            change_study(study=study, actor=owner, plan_text=text.replace(old, new))
    change_study(study=study, actor=owner, plan_text=text.replace("Do people decide", "Do all"))
    study.refresh_from_db()
    assert study.plan.title.startswith("Do all")


def test_a_second_run_with_the_same_seed_meets_other_people(four_arms):
    for _ in range(2):
        call_command("simulate_people", four_arms.code, people=2, seed=1)
    assert Place.objects.filter(state="submitted").count() == 4


def test_the_commands_say_what_is_wrong(tmp_path):
    owner = UserFactory()
    for plan, cases, email in [
        (tmp_path / "absent.yaml", CASES, owner.email),
        (PLAN, tmp_path / "absent.jsonl", owner.email),
        (PLAN, CASES, "nobody@example.com"),
    ]:
        with pytest.raises(CommandError):
            call_command("set_up_study", plan, cases, owner=email)
    with pytest.raises(CommandError):
        call_command("simulate_people", "absent")
