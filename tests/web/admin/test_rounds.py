"""The admin. Rounds: their form, their buttons."""

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import Assignment
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from tasks.admin.roles import EDITORS
from tasks.models import Round, RoundTarget, TargetModel
from tests.support.admin_forms import new_targets, round_form
from tests.support.factories import (
    RoundFactory,
)
from tests.web.admin.conftest import (
    ROLES,
    Role,
    change_url,
    sign_in,
)


def test_editors_add_rounds_to_their_own_tasks_only(editor, nli, foreign):
    url = reverse("admin:tasks_round_add")
    form = {"rule": "majority"}
    refused = editor.post(url, {**form, "task": foreign["tasks_task"].pk})
    assert refused.context["adminform"].form.has_error("task", "invalid_choice")
    assert editor.post(url, {**form, "task": nli.task_id}).status_code == 302
    assert Round.objects.get(task=nli.task, number=2).state == "draft"
    assert LogEntry.objects.get(action="round.created").target == "nli round 2"


def test_the_loop_takes_targets_of_the_same_task_only(editor, nli, foreign):
    own = [
        TargetModel.objects.create(task=nli.task, name=name, adapter="scripted")
        for name in ("first", "second")
    ]
    editor.post(change_url("tasks_round", nli), new_targets(nli, foreign["tasks_targetmodel"]))
    assert not RoundTarget.objects.filter(round=nli).exists()
    editor.post(change_url("tasks_round", nli), new_targets(nli, *own))
    Round.objects.filter(pk=nli.pk).update(show_target_name=False)
    assert [entry.target for entry in nli.round_targets.all()] == own
    assert Round.objects.get(pk=nli.pk).target_names == ["Model A", "Model B"]
    assert LogEntry.objects.filter(action="round.changed").exists()


def test_the_parents_of_a_round_are_earlier_rounds_of_its_task(editor, nli, foreign):
    second = RoundFactory(task=nli.task, number=2, state="draft")
    for parents in ([second.pk], [foreign["tasks_round"].pk]):
        editor.post(change_url("tasks_round", second), round_form(second, parents=parents))
        assert not second.parents.exists()
    editor.post(change_url("tasks_round", second), round_form(second, parents=[nli.pk]))
    assert second.parents.get() == nli


def test_the_state_is_no_field_and_the_rule_is_fixed_after_opening(editor, nli):
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    form = round_form(nli, state="released", rule="any", description="New words")
    assert editor.post(change_url("tasks_round", nli), form).status_code == 302
    nli.refresh_from_db()
    assert (nli.state, nli.rule, nli.description) == ("open", "majority", "New words")


@pytest.mark.parametrize("role", ROLES)
def test_owners_and_editors_move_a_round_by_button(people, nli, role):
    client = sign_in(people[role])
    page = client.get(change_url("tasks_round", nli))
    assert ('name="state" value="closed"' in page.text) == (role in EDITORS)
    url = reverse("admin:tasks_round_state", args=[nli.pk])
    response = client.post(url, {"state": "closed"})
    nli.refresh_from_db()
    assert (nli.state == "closed") == (role in EDITORS)
    assert (response.status_code == 403) == (role not in EDITORS)


def test_a_step_that_cannot_be_says_why(editor, nli, people):
    draft = RoundFactory(task=nli.task, number=2, state="draft")
    url = reverse("admin:tasks_round_state", args=[draft.pk])
    page = editor.post(url, {"state": "open"}, follow=True)
    assert [message.level_tag for message in page.context["messages"]] == ["error"]
    draft.refresh_from_db()
    assert draft.state == "draft"
    assert editor.get(url).status_code == 405
    page = editor.post(url, {"state": "ready"}, follow=True)
    assert [message.level_tag for message in page.context["messages"]] == ["success"]
    assert LogEntry.objects.get(action="round.ready").actor == people[Role.EDITOR]


def test_closing_says_how_many_are_writing(editor, nli, alice):
    context = nli.contexts.first()
    Assignment.objects.create(
        annotator=get_annotator(alice), round=nli, context=context, draft_saved_at=timezone.now()
    )
    page = editor.get(change_url("tasks_round", nli))
    effect = next(one["effect"] for one in page.context["steps"] if one["state"] == "closed")
    assert effect.endswith(": 1.")


def test_custom_pages_of_other_tasks_do_not_exist(editor, foreign):
    round = foreign["tasks_round"].pk
    assert editor.post(reverse("admin:tasks_round_state", args=[round])).status_code == 404


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER])
def test_custom_pages_need_the_role(people, own, role):
    client = sign_in(people[role])
    round = own["tasks_round"].pk
    assert client.post(reverse("admin:tasks_round_state", args=[round])).status_code == 403
    page = client.get(change_url("tasks_round", own["tasks_round"]))
    assert "contexts_page" not in page.context


def test_editors_are_led_to_the_pages_that_import_and_test(editor, own):
    round, target = own["tasks_round"], own["tasks_targetmodel"]
    links = {
        "contexts_page": change_url("tasks_round", round),
        "test_page": change_url("tasks_targetmodel", target),
    }
    for name, url in links.items():
        assert editor.get(editor.get(url).context[name]).status_code == 200
    Round.objects.update(state="closed")
    assert "contexts_page" not in editor.get(links["contexts_page"]).context
