"""Contexts: the pages of the owners to which the admin leads, and undo by an action there."""

import os
import time

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.models import Report
from core.accounts.services import get_annotator
from tasks.contexts import uploads
from tasks.models import Context, ContextBatch, Round, TaskMember
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
)
from tests.web.admin.conftest import (
    Role,
    change_url,
    example_of,
    list_url,
    sign_in,
)

LINES = [
    '{"premise": "The tram stops here.", "tag": "city"}',
    '{"premises": "Snow fell at noon."}',
    '{"premise": "The tram stops here."}',
    '{"premise": "Snow fell at noon."}',
]


def upload(client, round, text, name="new.jsonl"):
    raw = text if isinstance(text, bytes) else text.encode()
    url = reverse("own:contexts", args=[round.task.code, round.number])
    return client.post(url, {"file": SimpleUploadedFile(name, raw)})


def levels(page):
    """Of the messages on a page."""
    return [message.level_tag for message in page.context["messages"]]


def ticket_of(page):
    return page.context["ticket"]


def store(client, round, ticket):
    url = reverse("own:contexts-store", args=[round.task.code, round.number])
    return client.post(url, {"ticket": ticket}, follow=True)


def test_contexts_are_previewed_then_imported(editor, nli, people):
    ContextFactory(round=nli, fields={"premise": "Snow fell at noon."})
    page = upload(editor, nli, "\n".join(LINES))
    summary = page.context["summary"]
    assert [error.line for error in summary.errors] == [2]
    assert [(one.line, one.of) for one in summary.duplicates] == [(3, 1), (4, None)]
    assert page.context["histogram"] == [(20, 20, 1)]
    assert not nli.contexts.filter(tag="city").exists()
    assert levels(store(editor, nli, ticket_of(page))) == ["success", "warning"]
    context = nli.contexts.get(tag="city")
    assert context.batch.imported_by == people[Role.EDITOR]
    assert not list(uploads.UPLOADS_FOLDER.iterdir())


def test_metadata_are_previewed_as_they_stand_in_the_file(editor, nli):
    line = '{"premise": "Two trams stop.", "tag": "é", "metadata": {"id": "ü", "sure": true}}'
    rows = upload(editor, nli, line).context["rows"]
    assert rows == [(1, ["Two trams stop.", "é", '{"id": "ü", "sure": true}'])]


def test_a_second_click_imports_nothing_twice(editor, nli):
    ticket = ticket_of(upload(editor, nli, LINES[0]))
    store(editor, nli, ticket)
    assert levels(store(editor, nli, ticket)) == ["error"]
    assert nli.contexts.count() == 4


def test_csv_is_imported_too(editor, nli):
    ticket = ticket_of(upload(editor, nli, 'premise,tag\n"Rain, then sun.",sky\n', "a.csv"))
    store(editor, nli, ticket)
    assert nli.contexts.get(tag="sky").fields == {"premise": "Rain, then sun."}


def test_a_ticket_is_of_one_person_one_round_and_one_hour(editor, owner, nli, monkeypatch):
    second = RoundFactory(task=nli.task, number=2, state="draft")
    ticket = ticket_of(upload(editor, nli, LINES[0]))
    assert levels(store(owner, nli, ticket)) == ["error"]
    assert levels(store(editor, second, ticket)) == ["error"]
    assert levels(store(editor, nli, ticket + "x")) == ["error"]
    assert levels(store(editor, nli, "")) == ["error"]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert levels(store(editor, nli, ticket)) == ["error"]
    assert nli.contexts.count() == 3


def test_old_uploads_are_swept(editor, nli):
    upload(editor, nli, LINES[0])
    (old,) = uploads.UPLOADS_FOLDER.iterdir()
    assert old.stat().st_mode & 0o077 == 0
    os.utime(old, (0, 0))
    upload(editor, nli, LINES[0])
    assert old not in uploads.UPLOADS_FOLDER.iterdir()


def test_files_that_cannot_be_read_are_refused(editor, nli, monkeypatch):
    assert upload(editor, nli, "x", "a.xlsx").context["form"].errors.keys() == {"file"}
    assert not list(uploads.UPLOADS_FOLDER.glob("*"))
    monkeypatch.setattr("tasks.contexts.forms.MAX_BYTES", 10)
    assert upload(editor, nli, LINES[0]).context["form"].errors.keys() == {"file"}


def test_finished_rounds_take_no_contexts(editor, nli):
    Round.objects.update(state="closed")
    assert upload(editor, nli, LINES[0]).context["form"].errors.keys() == {"file"}


def test_an_unused_import_is_undone_by_action(people, nli):
    editor, viewer = sign_in(people[Role.EDITOR]), sign_in(people[Role.VIEWER])
    store(editor, nli, ticket_of(upload(editor, nli, LINES[0])))
    batch = ContextBatch.objects.get()
    chosen = {"action": "undo", "_selected_action": [batch.pk]}
    viewer.post(list_url("tasks_contextbatch"), chosen)
    assert ContextBatch.objects.exists()
    page = editor.post(list_url("tasks_contextbatch"), chosen, follow=True)
    assert "contexts taken out: 1" in page.text
    assert nli.contexts.count() == 3


def test_actions_leave_rows_of_weaker_roles_alone(people, own, foreign):
    """An editor of one task who only reads another retires nothing there."""
    person = people[Role.EDITOR]
    TaskMember.objects.create(task=foreign["tasks_task"], user=person, role=Role.VIEWER)
    rows = [own["tasks_context"], foreign["tasks_context"]]
    chosen = {"action": "retire", "_selected_action": [row.pk for row in rows]}
    page = sign_in(person).post(list_url("tasks_context"), chosen, follow=True)
    assert "Contexts retired: 1" in page.text
    assert Context.objects.filter(is_retired=True).get() == rows[0]


def test_texts_of_sensitive_tasks_are_behind_a_click(boss, hate, alice):
    context = hate.contexts.get()
    example = example_of(context, alice, text="Send the Zorbians home.", label="hate")
    report = Report.objects.create(
        annotator=get_annotator(alice), context=context, reason="other", comment="Zorbians again"
    )
    pages = [
        *(
            list_url(model)
            for model in ("tasks_context", "annotation_example", "annotation_report")
        ),
        change_url("tasks_context", context),
        change_url("annotation_example", example),
        change_url("annotation_report", report),
    ]
    for url in pages:
        text = boss.get(url).text
        assert "Zorbians" in text
        for part in text.split("<details>")[:1] + [
            piece.split("</details>")[-1] for piece in text.split("<details>")[1:]
        ]:
            assert "Zorbians" not in part, url
