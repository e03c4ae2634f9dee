"""The admin. Tasks and their members."""

import pytest
from django.urls import reverse

from core.accounts.models import LogEntry
from core.web.throttles import REQUESTS_PER_HOUR
from tasks.config_changes import ROUND_OPENED
from tasks.models import Round, Task, TaskMember
from tests.web.admin.conftest import (
    ROLES,
    Role,
    change_url,
    sign_in,
)


def task_form(task, **changes):
    """What the page of a task sends when nothing is changed."""
    members = list(task.members.order_by("pk"))
    form = {
        "config_text": task.config_text,
        "is_visible": "on",
        "allow_try_out": "on",
        "members-TOTAL_FORMS": len(members),
        "members-INITIAL_FORMS": len(members),
    }
    for place, member in enumerate(members):
        form |= {f"members-{place}-id": member.pk, f"members-{place}-role": member.role}
        form[f"members-{place}-task"] = task.pk
    return {**form, **changes}


def save_task(client, task, **changes):
    return client.post(change_url("tasks_task", task), task_form(task, **changes), follow=True)


def test_a_wrong_configuration_is_refused_with_place_and_cure(editor, nli):
    text = nli.task.config_text.replace("\nverdict:", "\nverdcit:")
    page = save_task(editor, nli.task, config_text=text)
    line = text[: text.index("\nverdcit:")].count("\n") + 2
    assert f"line {line}, column 1, `verdcit`" in page.text
    assert "did you mean" in page.text
    assert Task.objects.get(code="nli").config_text == nli.task.config_text


def test_a_configuration_gives_the_task_its_name_and_is_logged(editor, nli, people):
    text = nli.task.config_text.replace(nli.task.config.name, "Who follows whom")
    assert save_task(editor, nli.task, config_text=text).redirect_chain
    task = Task.objects.get(code="nli")
    assert task.name == "Who follows whom"
    entry = LogEntry.objects.get(action="task.changed")
    assert entry.actor == people[Role.EDITOR]
    assert "+name: Who follows whom" in entry.data["diff"]


def test_warnings_are_shown_but_do_not_refuse(editor, nli):
    text = nli.task.config_text.replace("language: en", "language: en", 1)
    start = text.index("examples:\n")
    end = text.index("\ngoal:")
    without = text[:start] + text[end + 1 :]
    page = save_task(editor, nli.task, config_text=without)
    assert Task.objects.get(code="nli").config_text.strip() == without.strip()
    assert [str(m) for m in page.context["messages"] if m.level_tag == "warning"]


def test_after_opening_the_meaning_of_examples_is_fixed(editor, nli):
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    text = nli.task.config_text.replace("neutral", "unclear")
    page = save_task(editor, nli.task, config_text=text)
    found = page.context["adminform"].form.errors["config_text"]
    assert ROUND_OPENED.rstrip(".") in found[0]
    assert "`label`" in found[0]
    assert page.context["adminform"].form["config_text"].value() == text
    assert Task.objects.get(code="nli").config_text == nli.task.config_text


def test_contexts_fix_their_fields_before_the_opening(editor, nli):
    text = nli.task.config_text.replace("premise", "passage")
    page = save_task(editor, nli.task, config_text=text)
    assert "config_text" in page.context["adminform"].form.errors
    nli.contexts.all().delete()
    save_task(editor, nli.task, config_text=text)
    assert Task.objects.get(code="nli").config.context[0].name == "passage"


def test_a_configuration_of_dynabench_1_is_converted(editor, nli):
    nli.contexts.all().delete()
    old = """
context:
- {name: context, type: string, placeholder: Enter context...}
input:
- {name: hypothesis, type: string, placeholder: Enter hypothesis...}
- {name: label, type: multiclass, labels: [entailed, neutral, contradictory], as_goal_message: true}
model_wrong_metric: {type: exact_match, reference_names: [label]}
output:
- {name: label}
- {name: prob, type: prob, reference_name: label}
perf_metric: {type: macro_f1, reference_name: label}
"""
    page = save_task(editor, nli.task, config_text=old)
    assert "Converted from Dynabench 1.0." in page.text
    task = Task.objects.get(code="nli")
    assert task.config.version == 1
    assert [c.name for c in task.config.input] == ["hypothesis", "label"]


def test_the_code_of_a_task_is_fixed(boss, nli):
    save_task(boss, nli.task, code="renamed")
    assert Task.objects.get().code == "nli"


def test_only_superusers_add_tasks(owner, boss, nli):
    url = reverse("admin:tasks_task_add")
    assert owner.get(url).status_code == 403
    form = task_form(nli.task, code="again") | {
        "members-TOTAL_FORMS": 0,
        "members-INITIAL_FORMS": 0,
    }
    assert boss.post(url, form).status_code == 302
    assert Task.objects.get(code="again").name == nli.task.config.name
    assert owner.get(change_url("tasks_task", Task.objects.get(code="again"))).status_code == 302


def new_member(task, email, role):
    count = task.members.count()
    return {
        "members-TOTAL_FORMS": count + 1,
        f"members-{count}-email": email,
        f"members-{count}-role": role,
        f"members-{count}-task": task.pk,
    }


def members(page):
    """The formset of the members on a task's page."""
    return page.context["inline_admin_formsets"][0].formset


def refusals(page):
    """What the service said against the form as a whole."""
    return page.context["adminform"].form.non_field_errors()


@pytest.mark.parametrize("role", ROLES)
def test_only_owners_name_members(people, bob, nli, role):
    member = new_member(nli.task, "BOB@example.com", "owner")
    save_task(sign_in(people[role]), nli.task, **member)
    added = TaskMember.objects.filter(user=bob)
    assert added.exists() == (role == Role.OWNER)


def test_editors_cannot_make_themselves_owners(people, editor, nli):
    mine = TaskMember.objects.get(user=people[Role.EDITOR])
    place = [m.pk for m in nli.task.members.order_by("pk")].index(mine.pk)
    save_task(editor, nli.task, **{f"members-{place}-role": "owner"})
    mine.refresh_from_db()
    assert mine.role == Role.EDITOR


def test_members_are_named_by_address_and_logged(owner, people, bob, nli):
    page = save_task(owner, nli.task, **new_member(nli.task, "bob@example.com", "viewer"))
    assert "warning" in [message.level_tag for message in page.context["messages"]]
    entry = LogEntry.objects.get(action="member.added")
    assert entry.actor == people[Role.OWNER]
    assert entry.data["user"] == "bob@example.com"
    assert entry.data["role"] == "viewer"
    page = save_task(owner, nli.task, **new_member(nli.task, "none@example.com", "viewer"))
    assert "email" in members(page).errors[-1]
    page = save_task(owner, nli.task, **new_member(nli.task, "bob@example.com", "editor"))
    assert refusals(page)
    assert TaskMember.objects.get(user=bob).role == "viewer"


def test_nobody_tries_addresses_without_end(owner, nli, monkeypatch):
    monkeypatch.setitem(REQUESTS_PER_HOUR, "members", 0)
    page = save_task(owner, nli.task, **new_member(nli.task, "bob@example.com", "viewer"))
    assert members(page).errors[-1]


def test_the_last_owner_stays(owner, people, nli):
    place = [m.role for m in nli.task.members.order_by("pk")].index("owner")
    page = save_task(owner, nli.task, **{f"members-{place}-DELETE": "on"})
    assert refusals(page)
    assert nli.task.members.filter(role="owner").exists()


def test_a_refusal_stores_nothing_and_keeps_what_was_typed(owner, nli):
    place = [m.role for m in nli.task.members.order_by("pk")].index("owner")
    text = nli.task.config_text.replace(nli.task.config.name, "Who follows whom")
    page = save_task(owner, nli.task, config_text=text, **{f"members-{place}-DELETE": "on"})
    assert refusals(page)
    assert page.context["adminform"].form["config_text"].value() == text
    assert Task.objects.get().config_text == nli.task.config_text
    assert not LogEntry.objects.filter(action__startswith="member.").exists()
    assert not LogEntry.objects.filter(action="task.changed").exists()
