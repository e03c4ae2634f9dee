"""Contexts in the API: listed for members, brought by text, retired."""

import json

import pytest

from core.accounts.models import LogEntry
from core.files.bounded import MIB, TOO_LARGE_MESSAGE
from tasks.contexts import services
from tasks.models import Context, ContextBatch, TaskMember
from tests.support.api_errors import error
from tests.support.factories import ContextFactory, RoundFactory

URL = "/api/v1/tasks/nli/rounds/1/contexts/"
BATCHES = "/api/v1/tasks/nli/rounds/1/context-batches/"


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def bring(client, text, format="jsonl", **more):
    return client.post(URL, {"format": format, "text": text, **more})


@pytest.mark.parametrize(
    ("role", "read", "write"),
    [("owner", 200, 201), ("editor", 200, 201), ("reviewer", 200, 403), ("viewer", 200, 403),
     (None, 404, 404)],
)  # fmt: skip
def test_who_may_read_and_bring_them(api, alice, nli, role, read, write):
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.get(URL).status_code == read
    assert bring(api, jsonl({"premise": "A new one."})).status_code == write
    one = f"{URL}{nli.contexts.first().pk}/"
    retired = api.patch(one, {"is_retired": True}).status_code
    assert retired == (200 if write == 201 else write)


def test_without_an_account_nobody_reads_them(anybody, nli):
    assert anybody.get(URL).status_code == 401


def test_members_read_them_page_by_page(editor, nli):
    batch = ContextBatch.objects.create(round=nli, file_name="a.csv")
    third = nli.contexts.filter(pk=nli.contexts.order_by("pk").last().pk)
    third.update(batch=batch, tag="x", is_retired=True)
    first = editor.get(URL, {"page_size": 2}).json()
    rows = first["results"] + editor.get(first["next"]).json()["results"]
    assert [row["fields"] for row in rows] == list(
        nli.contexts.order_by("pk").values_list("fields", flat=True)
    )
    assert (rows[0]["file"], rows[0]["tag"], rows[0]["is_retired"]) == (None, "", False)
    assert (rows[2]["file"], rows[2]["tag"], rows[2]["is_retired"]) == ("a.csv", "x", True)


def test_a_dry_run_tells_and_stores_nothing(editor, nli):
    known = nli.contexts.first().fields["premise"]
    text = jsonl({"premise": "New."}, {"premise": known}, {"premise": "New."}, {"premis": "x"})
    response = bring(editor, text, dry_run=True)
    assert response.status_code == 200
    told = response.json()
    assert (told["stored"], told["new"], told["error_count"], told["duplicate_count"]) == (
        0,
        1,
        1,
        2,
    )
    assert [(one["line"], one["of"]) for one in told["duplicates"]] == [(2, None), (3, 1)]
    assert [error["line"] for error in told["errors"]] == [4]
    assert "`premise`" in told["errors"][0]["message"]
    assert nli.contexts.count() == 3


def test_one_bad_line_refuses_all_unless_it_is_skipped(editor, nli, alice):
    text = jsonl({"premise": "New.", "tag": "t"}, {"premise": ""}) + "{broken\n"
    response = bring(editor, text)
    assert response.status_code == 422
    found = response.json()["error"]["fields"]["text"]
    assert [one.split(":")[0] for one in found] == ["line 2", "line 3"]
    assert nli.contexts.count() == 3
    response = bring(editor, text, skip_bad=True)
    assert response.status_code == 201
    assert (response.json()["stored"], response.json()["error_count"]) == (1, 2)
    made = Context.objects.get(tag="t")
    assert (made.fields, made.batch.imported_by) == ({"premise": "New."}, alice)


def test_many_bad_lines_are_counted(editor):
    found = bring(editor, "[]\n" * 203).json()["error"]["fields"]["text"]
    assert len(found) == 201
    assert found[-1].startswith("3 ")


@pytest.mark.own_process
def test_a_file_may_be_larger_than_a_form(editor, nli, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    told = {"format": "jsonl", "text": jsonl(*({"premise": f"Premise {n}."} for n in range(9)))}
    reply = editor.post(URL, told, headers={"Idempotency-Key": "one"})
    assert (reply.status_code, reply.json()["stored"]) == (201, 9)


@pytest.mark.own_process
def test_a_file_that_takes_all_memory_is_an_error_of_the_text(editor, nli, monkeypatch):
    monkeypatch.setattr(services, "MEMORY_BYTES", 10 * MIB)
    monkeypatch.setattr(services, "MEMORY_FACTOR", 0)
    reply = bring(editor, '{"premise": "x", "metadata": {"a": [%s[]]}}' % ("[]," * 700_000))
    assert (reply.status_code, error(reply)["fields"]["text"]) == (422, [TOO_LARGE_MESSAGE])
    assert not ContextBatch.objects.exists()


def test_csv(editor, nli):
    text = 'premise,tag\r\n"One, two.",a\r\n'
    assert bring(editor, text, "csv").json()["stored"] == 1
    assert Context.objects.get(tag="a").fields == {"premise": "One, two."}
    found = bring(editor, "premises\nx\n", "csv").json()["error"]["fields"]["text"]
    assert found[0].startswith("line 1:")
    assert "`premises`" in found[0]


def test_a_closed_round_takes_none(editor, nli):
    nli.state = "closed"
    nli.save()
    for dry_run in (True, False):
        response = bring(editor, jsonl({"premise": "New."}), dry_run=dry_run)
        assert response.status_code == 409
        assert nli.contexts.filter(fields__premise="New.").count() == 0


@pytest.mark.parametrize(
    "body",
    [{}, {"format": "xml", "text": "a"}, {"format": "csv", "text": None}, [],
     {"format": "csv", "text": "a\0"}, {"format": "jsonl", "text": ""}],
)  # fmt: skip
def test_odd_bodies(editor, body):
    assert editor.post(URL, body).status_code == 422


def test_a_context_is_retired_and_handed_out_again(editor, nli):
    context = nli.contexts.first()
    for retired, action in ((True, "contexts.retired"), (False, "contexts.returned")):
        told = editor.patch(f"{URL}{context.pk}/", {"is_retired": retired}).json()
        assert (told["id"], told["is_retired"]) == (context.pk, retired)
        assert LogEntry.objects.get(action=action).data["contexts"] == [context.pk]
    assert editor.patch(f"{URL}{context.pk}/", {}).status_code == 422


def test_another_rounds_context_is_not_there(editor, nli, qa):
    other = RoundFactory(task=nli.task, number=2, state="draft")
    for pk in (qa.contexts.first().pk, 10**30, 2**63):
        assert editor.patch(f"{URL}{pk}/", {"is_retired": True}).status_code == 404
    pk = nli.contexts.first().pk
    url = URL.replace("/1/", f"/{other.number}/")
    assert editor.patch(f"{url}{pk}/", {"is_retired": True}).status_code == 404
    assert not Context.objects.filter(is_retired=True).exists()


def brought(round, name, rows):
    """An import of so many contexts."""
    batch = ContextBatch.objects.create(round=round, file_name=name)
    ContextFactory.create_batch(rows, round=round, batch=batch)
    return batch


@pytest.mark.parametrize(
    ("role", "read", "undo"),
    [("owner", 200, 204), ("editor", 200, 204), ("reviewer", 403, 403), ("viewer", 403, 403),
     (None, 404, 404)],
)  # fmt: skip
def test_who_may_read_and_undo_imports(api, alice, nli, role, read, undo):
    batch = brought(nli, "a.jsonl", 1)
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.get(BATCHES).status_code == read
    assert api.delete(f"{BATCHES}{batch.pk}/").status_code == undo
    assert ContextBatch.objects.exists() == (undo != 204)


def test_imports_are_told_with_how_many_they_brought(editor, nli):
    RoundFactory(task=nli.task, number=2, state="draft")
    assert editor.get(BATCHES).json()["results"] == []
    bring(editor, jsonl({"premise": "One."}, {"premise": "Two."}))
    (told,) = editor.get(BATCHES).json()["results"]
    assert told.pop("imported_at")
    assert told == {"id": ContextBatch.objects.get().pk, "file_name": "api.jsonl", "contexts": 2}
    assert editor.get(BATCHES.replace("/1/", "/2/")).json()["results"] == []
    assert editor.get(BATCHES.replace("/1/", "/7/")).status_code == 404


def test_an_import_is_undone_unless_a_context_is_used(editor, alice, nli):
    batch, kept = brought(nli, "a.jsonl", 2), brought(nli, "b.jsonl", 1)
    kept.context_set.get().assignments.create(annotator=alice.annotator, round=nli)
    assert editor.delete(f"{BATCHES}{batch.pk}/").status_code == 204
    assert LogEntry.objects.get(action="contexts.undone").data == {"file": "a.jsonl", "rows": 2}
    assert editor.delete(f"{BATCHES}{batch.pk}/").status_code == 404
    response = editor.delete(f"{BATCHES}{kept.pk}/")
    assert (response.status_code, response.json()["error"]["code"]) == (409, "used")
    assert nli.contexts.count() == 4


def test_another_rounds_import_is_not_there(editor, nli, qa):
    other = RoundFactory(task=nli.task, number=2, state="draft")
    for pk in (brought(other, "b", 1).pk, brought(qa, "c", 1).pk, 2**63, 10**30):
        assert editor.delete(f"{BATCHES}{pk}/").status_code == 404
    assert ContextBatch.objects.count() == 2
