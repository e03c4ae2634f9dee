"""What a round asks is fixed once it was opened, through every door and in the database itself."""

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.urls import reverse

from annotation.attempts import services
from annotation.attempts.services import ask_targets
from annotation.context_picking.services import assign
from annotation.models import Attempt, Example
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.models import Round, RoundTarget, TargetModel
from tasks.rounds.loop import RoundError, register_target, replace_target
from tasks.rounds.services import change_round
from tasks.rounds.states import set_round_state
from tasks.targets.services import change_target
from tests.support.admin_forms import new_targets, round_form, target_form
from tests.support.factories import scripted_target
from tests.web.admin.conftest import Role, change_url, foreign, people, sign_in  # noqa: F401


def another(task, name="other", **options):
    return TargetModel.objects.create(
        task=task, name=name, adapter="scripted", url="http://other.test", options=options
    )


@pytest.fixture
def target(nli):
    return scripted_target(nli, label="neutral")


@pytest.fixture
def opened(nli, target):
    """A round that the service opened, with a target and no example."""
    Round.objects.filter(pk=nli.pk).update(state="ready")
    return set_round_state(round=nli, state="open", actor=None)


@pytest.fixture
def editor(people):  # noqa: F811
    return sign_in(people[Role.EDITOR])


def names(round):
    return [entry.target.name for entry in RoundTarget.objects.filter(round=round)]


@pytest.mark.parametrize("state", ["open", "paused", "closed", "released"])
def test_the_database_refuses_each_write(opened, target, state):
    other = another(opened.task)
    Round.objects.update(state=state)
    rows = RoundTarget.objects.filter(round=opened)
    for action in (
        lambda: RoundTarget.objects.create(round=opened, target=other),
        lambda: rows.update(target=other),
        lambda: rows.update(position=3),
        lambda: rows.delete(),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            action()
    assert names(opened) == ["scripted"]


def test_the_database_lets_planned_rounds_be_written(nli, target):
    Round.objects.update(state="draft")
    RoundTarget.objects.update(position=2)
    RoundTarget.objects.create(round=nli, target=another(nli.task))
    RoundTarget.objects.all().delete()


def test_a_released_round_that_was_never_opened_is_fixed_too(nli):
    Round.objects.update(state="released", opened_at=None)
    with pytest.raises(IntegrityError):
        RoundTarget.objects.create(round=nli, target=another(nli.task))


def test_services_refuse_other_targets_of_an_opened_round(opened, alice):
    other = another(opened.task)
    with pytest.raises(Refused):
        change_round(round=opened, actor=alice, fields={}, targets=[other])
    with pytest.raises(Refused):
        register_target(task=opened.task, name="new", round=opened, adapter="scripted")
    assert names(opened) == ["scripted"]
    assert not TargetModel.objects.filter(name="new").exists()


def test_the_same_targets_are_no_change(opened, alice, target):
    change_round(round=opened, actor=alice, fields={"description": "New"}, targets=[target])
    assert "targets" not in LogEntry.objects.get(action="round.changed").data


def test_the_command_refuses_an_opened_round(opened):
    with pytest.raises(CommandError):
        call_command("add_target", "nli", "https://models.example.org/x", name="x", round=1)
    assert not TargetModel.objects.filter(name="x").exists()


def test_a_target_of_another_task_keeps_its_task(opened, sentiment):
    register_target(task=sentiment.task, name="scripted", adapter="scripted")
    assert TargetModel.objects.filter(task=sentiment.task).count() == 1
    assert opened.round_targets.get().target.task == opened.task


def test_the_admin_shows_the_targets_of_an_opened_round_to_read_only(editor, opened, target):
    url = change_url("tasks_round", opened)
    assert 'name="round_targets-0-target"' not in editor.get(url).text
    other = another(opened.task)
    editor.post(url, new_targets(opened, other))
    entry = opened.round_targets.get()
    first = {"round_targets-0-id": entry.pk, "round_targets-0-round": opened.pk}
    editor.post(url, {**round_form(opened), **first, "round_targets-0-target": other.pk})
    editor.post(url, {**round_form(opened), **first, "round_targets-0-DELETE": "on"})
    assert names(opened) == ["scripted"]


def test_a_round_that_opens_while_the_admins_form_is_sent(editor, opened, monkeypatch):
    monkeypatch.setattr(Round, "has_fixed_targets", False)  # as it was when the form was made
    monkeypatch.setattr("tasks.rounds.services.set_targets", refuse)
    page = editor.post(
        change_url("tasks_round", opened), new_targets(opened, another(opened.task)), follow=True
    )
    assert page.status_code == 200
    assert names(opened) == ["scripted"]


def refuse(round, targets):
    raise RoundError("It was opened.")


def test_the_admin_logs_the_names(editor, nli, target):
    Round.objects.update(state="draft")
    form = new_targets(nli, target, another(nli.task))
    form |= {"round_targets-INITIAL_FORMS": 1, "round_targets-0-id": nli.round_targets.get().pk}
    editor.post(change_url("tasks_round", nli), form)
    noted = LogEntry.objects.filter(action="round.changed", data__has_key="targets").get()
    assert noted.data["targets"] == {"before": ["scripted"], "after": ["scripted", "other"]}


def test_an_owner_deletes_a_round_without_examples(people, opened):  # noqa: F811
    Round.objects.update(state="closed")
    url = reverse("admin:tasks_round_delete", args=[opened.pk])
    assert sign_in(people[Role.OWNER]).post(url, {"post": "yes"}).status_code == 302
    assert not Round.objects.exists()


# What a target is


@pytest.mark.parametrize(
    "fields",
    [
        {"options": {"label": "entailment"}},
        {"adapter": "http"},
        {"source": "/models/other"},
        {"revision": "c" * 40},
        {"serving": {"backend": "torch"}},
        {"url": ""},
    ],
)
def test_another_model_is_another_target(opened, target, people, fields):  # noqa: F811
    with pytest.raises(Refused):
        change_target(target=target, actor=people[Role.EDITOR], fields=fields)
    with pytest.raises(Refused):
        register_target(task=opened.task, name="scripted", **fields)


def test_a_target_may_move_and_the_log_says_from_where(opened, target, alice):
    alice.is_superuser = True
    change_target(
        target=target, actor=alice, fields={"url": "http://new.test", "secret_env": "TARGET_X"}
    )
    noted = LogEntry.objects.get(action="target.changed").data
    assert noted["url"] == {"before": "http://scripted.test", "after": "http://new.test"}
    assert noted["fields"] == ["url", "secret_env"]


def test_a_folder_may_lie_elsewhere(opened, target, alice, settings):
    settings.MODELS_HOME = Path("/new/home/models")
    TargetModel.objects.update(url="", source="/old/home/models/3fa9")
    fields = {"source": "/new/home/models/3fa9"}
    assert change_target(target=target, actor=alice, fields=fields).source == fields["source"]


def test_before_a_round_opens_a_target_may_be_anything(nli, target, alice):
    Round.objects.update(state="draft")
    fields = {"options": {"label": "entailment"}}
    assert change_target(target=target, actor=alice, fields=fields).options == fields["options"]


def test_the_admin_tells_at_the_form_that_it_would_be_another_model(editor, opened, target):
    url = change_url("tasks_targetmodel", target)
    form = target_form(opened.task, name="scripted", options='{"label": "entailment"}')
    page = editor.post(url, form)
    assert page.status_code == 200
    assert page.context["adminform"].form.non_field_errors()
    moved = {"options": '{"label": "neutral"}', "url": "http://moved.test"}
    assert editor.post(url, {**form, **moved}).status_code == 302
    target.refresh_from_db()
    assert (target.url, target.options) == ("http://moved.test", {"label": "neutral"})


def test_a_target_of_a_round_that_opens_while_the_admins_form_is_sent(
    editor, opened, target, monkeypatch
):
    monkeypatch.setattr("tasks.targets.forms.check_same_model", lambda target, fields: None)
    form = target_form(opened.task, name="scripted", options='{"label": "entailment"}')
    page = editor.post(change_url("tasks_targetmodel", target), form, follow=True)
    assert page.status_code == 200
    assert TargetModel.objects.get().options == {"label": "neutral"}


# Replacing a broken one


def test_a_broken_target_is_replaced_while_nothing_was_collected(opened, target, alice):
    target.versions.create(digest="old")
    new = another(opened.task, label="entailment")
    at = Round.objects.get().opened_at
    replace_target(round=opened, old_target=target, new_target=new, actor=alice)
    assert names(opened) == ["other"]
    now = Round.objects.get()
    assert (now.state, now.opened_at) == ("open", at)
    noted = LogEntry.objects.get(action="round.target_replaced")
    assert noted.actor == alice
    assert noted.data["before"] == {"target": "scripted", "version": "old"}
    assert noted.data["after"]["target"] == "other"
    assert noted.data["after"]["version"]
    with pytest.raises(IntegrityError):
        RoundTarget.objects.all().delete()


def test_no_target_is_replaced_under_examples_or_by_a_silent_one(opened, target, alice):
    silent = another(opened.task, "silent", fail="down")
    with pytest.raises(Refused, match="silent"):
        replace_target(round=opened, old_target=target, new_target=silent, actor=alice)
    for wrong in (target, another(opened.task, "good", label="neutral")):
        with pytest.raises(Refused):
            replace_target(round=opened, old_target=wrong, new_target=target, actor=alice)
    write(opened, alice)
    good = TargetModel.objects.get(name="good")
    with pytest.raises(Refused):
        replace_target(round=opened, old_target=target, new_target=good, actor=alice)
    assert names(opened) == ["scripted"]


def test_a_planned_round_is_changed_by_its_plan(nli, target, alice):
    Round.objects.update(state="draft")
    with pytest.raises(Refused):
        replace_target(
            round=Round.objects.get(), old_target=target, new_target=another(nli.task), actor=alice
        )


def write(round, person):
    assignment = assign(annotator=get_annotator(person), round=round)
    inputs = {"hypothesis": "Nobody came.", "label": assignment.goal}
    attempt, _ = services.begin_attempt(
        annotator=assignment.annotator, assignment=assignment, key="b" * 32, inputs=inputs
    )
    return ask_targets(attempt)


def test_what_the_old_target_answers_is_not_stored(opened, target, alice, monkeypatch):
    """It is replaced after it was asked and before it answers."""
    new, stored = another(opened.task, label="entailment"), services.finish_attempt

    def late(**asked):
        replace_target(round=opened, old_target=target, new_target=new, actor=None)
        return stored(**asked)

    monkeypatch.setattr(services, "finish_attempt", late)
    attempt = write(opened, alice)
    assert (attempt.state, attempt.failure) == (Attempt.State.FAILED, "replaced")
    assert not Example.objects.exists()


def test_the_page_replaces_a_target(editor, opened, target):
    another(opened.task, label="entailment")
    url = reverse("own:round-replace", args=["nli", 1])
    assert url in editor.get(reverse("own:rounds", args=["nli"])).text
    assert editor.get(url).status_code == 200
    assert editor.post(url, {"old": "scripted", "new": "none"}).status_code == 422
    assert editor.post(url, {"old": "scripted", "new": "other"}).status_code == 302
    assert names(opened) == ["other"]
    Round.objects.update(state="released")
    assert editor.post(url, {"old": "other", "new": "scripted"}).status_code == 409
    assert url not in editor.get(reverse("own:rounds", args=["nli"])).text


def test_others_do_not_replace_a_target(people, opened):  # noqa: F811
    url = reverse("own:round-replace", args=["nli", 1])
    assert sign_in(people[Role.REVIEWER]).post(url).status_code in (403, 404)


# Opening asks


def test_a_round_whose_target_does_not_answer_stays_closed(nli, target):
    TargetModel.objects.update(options={"fail": "refused"})
    for state in ("ready", "paused", "closed"):
        Round.objects.update(state=state)
        with pytest.raises(Refused, match=r"scripted: .*refused"):
            set_round_state(round=nli, state="open", actor=None)
        assert Round.objects.get().state == state


def test_what_was_asked_is_what_opens(nli, target, monkeypatch):
    """A target that changes after it answered is not what the round would open with."""
    Round.objects.update(state="ready")

    def meanwhile(targets, round):
        TargetModel.objects.update(options={"label": "entailment"})
        return {}

    monkeypatch.setattr("tasks.rounds.states.ask_targets", meanwhile)
    with pytest.raises(Refused, match="scripted"):
        set_round_state(round=nli, state="open", actor=None)

    def joined(targets, round):
        scripted_target(nli, "second", label="neutral")
        return {}

    monkeypatch.setattr("tasks.rounds.states.ask_targets", joined)
    with pytest.raises(Refused):
        set_round_state(round=nli, state="open", actor=None)
    assert Round.objects.get().state == "ready"


def test_opening_logs_what_answered(opened):
    noted = LogEntry.objects.get(action="round.open").data["targets"]
    assert list(noted) == ["scripted"]
    assert noted["scripted"]


def test_every_door_tells_why_a_round_does_not_open(editor, nli, target):
    TargetModel.objects.update(options={"fail": "misconfigured"})
    Round.objects.update(state="ready")
    page = editor.post(reverse("own:round-change", args=["nli", 1, "open"]))
    assert page.status_code == 409
    assert "scripted" in page.text
    url = reverse("admin:tasks_round_state", args=[nli.pk])
    assert "scripted" in editor.post(url, {"state": "open"}, follow=True).text
    assert Round.objects.get().state == "ready"


def test_a_task_without_an_example_is_asked_with_a_plain_text(nli, target):
    nli.task.config_text = re.sub(r"\nexamples:\n( .*\n)+", "\n", nli.task.config_text)
    assert not nli.task.config.examples.good
    nli.task.save()
    rules = [{"field": "hypothesis", "equals": "", "fail": "refused"}]
    TargetModel.objects.update(options={"rules": rules, "label": "neutral"})
    Round.objects.update(state="ready")
    assert set_round_state(round=nli, state="open", actor=None).state == "open"
