"""`dynabench apply` at a server: a folder becomes a task, and stays what the task is like."""

import json
import sys
from functools import partial

import httpx
import pytest
from django.test import Client
from django.utils import timezone

from core.accounts.models import Annotator, confirm_address
from dynabench.client.client import DynabenchClient
from dynabench.client.commands import apply
from tasks.config_changes import hash_text
from tasks.models import Context, Invitation, Round, TargetModel, Task, TaskMember
from tasks.services import save_config
from tasks.targets.connect import get_secret
from tests.support.benchmark_folders import count_rows, start_folder
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(db):
    user = UserFactory(email="ann@example.com")
    confirm_address(user)
    return user


def ask_site(request: httpx.Request) -> httpx.Response:
    """The site's answer, in this process and so in the test's transaction."""
    client = Client(raise_request_exception=False)
    response = client.generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        content_type=request.headers.get("Content-Type", ""),
        headers=dict(request.headers),
    )
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return httpx.Response(response.status_code, headers=dict(response.headers), content=body)


@pytest.fixture
def desk(ann, tmp_path, capsys, monkeypatch, settings):
    """A new folder. The command asks the site in this process."""
    client = partial(DynabenchClient, transport=httpx.MockTransport(ask_site))
    monkeypatch.setattr("dynabench.client.commands.shared.DynabenchClient", client)
    return start_folder(ann, "http://testserver", tmp_path, capsys, monkeypatch, settings)


@pytest.fixture
def applied(desk):
    desk.run("--yes")
    return desk


# edit → plan → apply. tests/integration/test_apply.py has the whole way at a running server.


def test_what_was_edited_is_changed_and_nothing_else(applied):
    applied.edit("task.yaml", "max_length: 300", "max_length: 200")
    applied.edit("target.yaml", "label: positive", "label: negative")
    applied.edit("round.yaml", "500", "70")
    applied.edit("members.csv", "annotator", "writer")
    with applied.path("texts.jsonl").open("a") as file:
        file.write('{"prompt": "A seventh text."}\n')
    assert applied.plan() == [
        ("change", "task.yaml"),
        ("change", "target.yaml"),
        ("change", "round.yaml"),
        ("create", "texts.jsonl"),
        ("change", "members.csv line 2"),
    ]
    out = applied.run("--dry-run", code=2).out
    assert "-    max_length: 300" in out
    assert "+    max_length: 200" in out
    applied.run("--yes")
    task, round, target = Task.objects.get(), Round.objects.get(), TargetModel.objects.get()
    assert task.config.get_component("text").max_length == 200
    assert (round.max_collected, target.options) == (70, {"label": "negative"})
    assert round.contexts.count() == 7
    open_invitations = Invitation.objects.filter(revoked_at=None)
    assert sorted(each.role for each in open_invitations) == ["reviewer", "writer"]
    assert applied.plan(code=0) == []


def test_a_person_is_asked(desk, monkeypatch):
    class Answer:
        def __init__(self, text):
            self.text = text

        def readline(self):
            return self.text

    for text in ("", "no\n"):
        monkeypatch.setattr(sys, "stdin", Answer(text))
        desk.run(code=1)
        assert not Task.objects.exists()
    monkeypatch.setattr(sys, "stdin", Answer("yes\n"))
    desk.run()
    assert Task.objects.exists()


def test_line_ends_and_accents_are_no_change(applied):
    applied.edit("task.yaml", "Sentence to start from", "Phrase a\u0300 modifier")
    applied.run("--yes")
    text = applied.path("task.yaml").read_text()
    applied.path("task.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert applied.plan(code=0) == []


def test_texts_can_fill_a_field_that_the_same_plan_adds(desk):
    desk.path("texts.jsonl").unlink()
    desk.run("--yes")
    field = "  - {name: prompt, type: text, label: Sentence to start from}\n"
    desk.edit("task.yaml", field, field + "  - {name: source, type: text, required: false}\n")
    desk.write(texts='{"prompt": "A text.", "source": "a diary"}\n')
    assert desk.plan() == [("change", "task.yaml"), ("create", "texts.jsonl")]
    desk.run("--yes")
    assert Context.objects.get().fields == {"prompt": "A text.", "source": "a diary"}


def test_the_next_round_gets_the_next_texts(applied):
    applied.edit("round.yaml", "number: 1", "number: 2")
    assert applied.plan() == [("create", "round.yaml"), ("create", "texts.jsonl")]
    applied.run("--yes")
    assert list(Round.objects.values_list("number", flat=True)) == [1, 2]
    assert Context.objects.filter(round__number=2).count() == 6
    # A round that has ended takes no texts, and needs none.
    Round.objects.filter(number=2).update(state="closed", closed_at=timezone.now())
    assert applied.plan(code=0) == []


def test_an_existing_task_comes_into_a_folder(applied, tmp_path):
    stored_text = Task.objects.get().config_text
    applied.folder = tmp_path / "other"
    applied.folder.mkdir()
    applied.write(benchmark="task: my-benchmark\n")
    applied.run("--fetch")
    assert applied.path("task.yaml").read_text() == stored_text
    assert applied.plan(code=0) == []
    applied.write(benchmark="task: nowhere\n")
    applied.run("--fetch", code=1)


# opening


def test_a_round_opens_once_and_only_with_all_that_it_needs(desk):
    desk.edit("round.yaml", "open: false", "open: true")
    texts = desk.path("texts.jsonl").read_text()
    desk.path("texts.jsonl").unlink()
    assert ("impossible", "round.yaml") in desk.plan(code=1)
    desk.run("--yes", code=1)
    assert Round.objects.get().state == "draft"
    desk.write(texts=texts)
    assert desk.plan() == [("create", "texts.jsonl"), ("change", "round.yaml")]
    desk.run("--yes")
    assert Round.objects.get().state == "open"
    # An owner ends it. The folder does not open it again.
    Round.objects.update(state="closed", closed_at=timezone.now())
    assert desk.plan(code=0) == []


def test_fixed_parts_of_an_opened_task_are_refused_with_their_line(applied):
    applied.edit("round.yaml", "open: false", "open: true")
    applied.run("--yes")
    text = applied.path("task.yaml").read_text()
    applied.edit("task.yaml", "labels: [positive, negative, neutral]", "labels: [good, bad]")
    line = text[: text.index("labels: [")].count("\n") + 1
    out = json.loads(applied.run("--dry-run", "--json", code=1).out)
    assert any(each["file"].startswith(f"task.yaml line {line}") for each in out["problems"])
    applied.run("--yes", code=1)
    applied.write(task=text)
    # Its model and its rule are fixed, too; the plan says so and does the rest.
    applied.edit("target.yaml", "label: positive", "label: negative")
    applied.edit("round.yaml", "rule: majority", "rule: all")
    with applied.path("texts.jsonl").open("a") as file:
        file.write('{"prompt": "A seventh text."}\n')
    assert applied.plan(code=1) == [
        ("impossible", "target.yaml"),
        ("impossible", "round.yaml"),
        ("create", "texts.jsonl"),
    ]
    applied.run("--yes", code=1)
    assert (Round.objects.get().rule, TargetModel.objects.get().options) == (
        "majority",
        {"label": "positive"},
    )
    assert Context.objects.count() == 7


# what is wrong in a file


@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        ("task.yaml", "language: en", "language: [", "task.yaml line"),
        ("task.yaml", "max_length: 300", "max_lenght: 300", "task.yaml line"),
        ("target.yaml", "adapter:", "adaptor:", "target.yaml line 4, column 1"),
        ("target.yaml", "url: http://scripted.test\n", "", "target.yaml"),
        ("round.yaml", "number: 1", "number: 4", "round.yaml line 2"),
        ("members.csv", "reviewer", "boss", "members.csv line 3, column 18"),
        ("members.csv", "cleo@", "cleo", "members.csv line 3, column 1"),
        ("texts.jsonl", '{"prompt": "The kettle', '{"prompt "The kettle', "texts.jsonl line 1"),
        ("texts.jsonl", '{"prompt": "The kettle', '{"promt": "The kettle', "texts.jsonl line 1"),
        ("benchmark.yaml", "visible: false", "visible: no", "benchmark.yaml line 7"),
    ],
)
def test_an_error_names_its_file_and_line(desk, name, old, new, place):
    desk.edit(name, old, new)
    message = desk.run("--yes", code=1).err
    assert place in message
    assert not Task.objects.exists()


def test_texts_are_checked_by_the_site_before_anything_changes(applied):
    applied.edit("round.yaml", "500", "70")
    with applied.path("texts.jsonl").open("a") as file:
        file.write('{"prompt": ""}\n')
    assert applied.problems() == [("texts.jsonl", 7)]
    applied.run("--yes", code=1)
    assert Round.objects.get().max_collected == 500


def test_a_code_that_is_taken_is_said_before(desk, settings):
    text = desk.path("task.yaml").read_text()
    TaskFactory(code="my-benchmark", config_text=text, is_visible=False)
    assert desk.problems() == [("benchmark.yaml", 0)]


# somebody else


def change_config_on_the_site(ann, old="max_length: 300", new="max_length: 250"):
    task = Task.objects.get()
    text = task.config_text.replace(old, new)
    save_config(task=task, text=text, base=hash_text(task.config_text), actor=ann)
    return text


def test_another_persons_configuration_is_not_overwritten_silently(applied, ann):
    theirs = change_config_on_the_site(ann)
    applied.edit("task.yaml", "min_length: 8", "min_length: 9")
    assert ("impossible", "task.yaml") in applied.plan(code=1)
    applied.edit("round.yaml", "500", "70")
    applied.run("--yes", code=1)
    # Nothing at all was changed.
    assert (Task.objects.get().config_text, Round.objects.get().max_collected) == (theirs, 500)

    applied.run("--fetch")
    assert applied.path("task.yaml").read_text() == theirs
    applied.edit("task.yaml", "min_length: 8", "min_length: 9")
    applied.run("--yes")
    components = Task.objects.get().config
    assert components.get_component("text").min_length == 9
    assert components.get_component("text").max_length == 250

    change_config_on_the_site(ann, "max_length: 250", "max_length: 251")
    applied.run("--yes", "--overwrite")
    assert Task.objects.get().config.get_component("text").max_length == 250


def test_a_change_between_plan_and_step_stops(applied, ann, monkeypatch):
    applied.edit("task.yaml", "min_length: 8", "min_length: 9")
    changed = []

    def change_meanwhile():
        changed.append(change_config_on_the_site(ann))

    monkeypatch.setattr(apply, "_ask", change_meanwhile)
    error = applied.run(code=1).err
    assert "task.yaml" in error
    assert Task.objects.get().config_text == changed[0]


def test_a_target_changed_between_plan_and_step_is_not_overwritten(applied, monkeypatch):
    applied.edit("target.yaml", "label: positive", "label: negative")
    theirs = {"label": "neutral"}
    monkeypatch.setattr(apply, "_ask", lambda: TargetModel.objects.update(options=theirs))
    applied.run(code=1)
    assert TargetModel.objects.get().options == theirs


def test_a_folder_without_its_lock_overwrites_nothing(applied):
    applied.path("dynabench.lock").unlink()
    assert applied.plan(code=0) == []  # the same text
    applied.path("dynabench.lock").unlink(missing_ok=True)
    applied.edit("task.yaml", "min_length: 8", "min_length: 9")
    assert applied.plan(code=1) == [("impossible", "task.yaml")]
    assert applied.plan("--overwrite") == [("change", "task.yaml")]


# rights


@pytest.mark.parametrize("role", ["reviewer", "annotator", "viewer"])
def test_who_cannot_edit_changes_nothing(applied, role):
    other = UserFactory(email="dora@example.com")
    TaskMember.objects.create(task=Task.objects.get(), user=other, role=role)
    applied.act_as(other)
    applied.edit("task.yaml", "min_length: 8", "min_length: 9")
    rows = count_rows()
    error = applied.run("--yes", code=3).err
    assert role in error
    assert count_rows() == rows


def test_an_editor_changes_all_but_the_members(applied):
    editor = UserFactory(email="dora@example.com")
    TaskMember.objects.create(task=Task.objects.get(), user=editor, role="editor")
    applied.act_as(editor)
    applied.edit("round.yaml", "500", "70")
    applied.edit("members.csv", "ben@", "eve@")
    assert applied.plan() == [("change", "round.yaml")]
    applied.run("--yes")
    assert Round.objects.get().max_collected == 70
    assert not Invitation.objects.filter(address="eve@example.com").exists()


def test_a_stranger_learns_only_that_the_name_is_taken(applied):
    stranger = UserFactory(email="dora@example.com")
    confirm_address(stranger)
    applied.act_as(stranger)
    assert applied.problems() == [("benchmark.yaml", 0)]
    applied.monkeypatch.delenv("DYNABENCH_API_KEY")
    applied.monkeypatch.setenv("XDG_CONFIG_HOME", str(applied.folder))
    applied.run("--yes", code=3)


# people


def test_roles_of_members_follow_the_file_and_nobody_is_removed_unasked(applied, ann):
    task = Task.objects.get()
    ben, dora = UserFactory(email="ben@example.com"), UserFactory(email="dora@example.com")
    TaskMember.objects.create(task=task, user=ben, role="annotator")
    TaskMember.objects.create(task=task, user=dora, role="viewer")
    applied.edit("members.csv", "annotator", "judge")
    applied.run("--yes")
    assert TaskMember.objects.get(user=ben).role == "judge"
    assert TaskMember.objects.get(user=dora).role == "viewer"

    applied.write(members="email,role\nben@example.com,judge\n")
    assert applied.plan(code=0) == []
    assert applied.plan("--prune") == [("remove", "members.csv")] * 2
    applied.run("--yes", "--prune")
    assert set(TaskMember.objects.values_list("user__email", flat=True)) == {
        "ann@example.com",
        "ben@example.com",
    }
    assert not Invitation.objects.filter(address="cleo@example.com", revoked_at=None).exists()


def test_nobody_prunes_themselves_without_a_pseudonym(applied, ann):
    dora = UserFactory(email="dora@example.com")
    TaskMember.objects.create(task=Task.objects.get(), user=dora, role="owner")
    # As of an account that has only ever used the command.
    Annotator.objects.filter(user=ann).delete()
    applied.write(members="email,role\ndora@example.com,owner\n")
    removals = applied.run("--dry-run", "--prune", code=2).out
    assert "ann@example.com" not in removals
    assert "cleo@example.com" in removals
    applied.run("--yes", "--prune")
    assert TaskMember.objects.filter(user=ann).exists()


def test_the_last_owner_stays_owner(applied):
    applied.write(members="email,role\nann@example.com,viewer\n")
    assert applied.plan(code=1) == [("impossible", "members.csv line 2")]


def test_a_revoked_invitation_is_only_sent_again_if_asked(applied):
    Invitation.objects.filter(address="ben@example.com").update(revoked_at=timezone.now())
    assert applied.plan(code=0) == []
    assert applied.plan("--invite-again") == [("create", "members.csv line 2")]
    applied.run("--yes", "--invite-again")
    assert Invitation.objects.filter(address="ben@example.com", revoked_at=None).count() == 1
    assert applied.plan("--invite-again", code=0) == []


# the model


def test_a_served_model_is_found_by_its_name(desk, ann):
    other = TaskFactory(code="moods", config_text=desk.path("task.yaml").read_text())
    source = {"source": "org/starter@main", "adapter": "http"}
    TargetModel.objects.create(task=other, name="starter", **source)
    desk.write(target="name: mine\nmodel: startr\n")
    error = desk.run("--yes", code=1).err
    assert "moods/starter" in error
    desk.write(target="name: mine\nmodel: starter\n")
    desk.run("--yes")
    target = TargetModel.objects.get(name="mine")
    assert (target.task.code, target.source) == ("my-benchmark", "org/starter@main")
    assert desk.plan(code=0) == []


def test_a_secret_comes_from_the_environment_and_stays_out_of_the_folder(desk, monkeypatch):
    remote = "name: mine\nurl: https://mine.test/models/a\nsecret_from: TARGET_MINE\n"
    desk.write(target=remote)
    assert desk.problems() == [("target.yaml", 3)]
    monkeypatch.setenv("TARGET_MINE", "s3cret")
    said = desk.run("--yes")
    target = TargetModel.objects.get()
    assert get_secret(target) == "s3cret"
    for path in desk.folder.iterdir():
        assert "s3cret" not in path.read_text()
    assert "s3cret" not in said.out + said.err
    # It is not needed while nothing changes, and sent again with a new address.
    monkeypatch.delenv("TARGET_MINE")
    assert desk.plan(code=0) == []
    desk.edit("target.yaml", "models/a", "models/b")
    assert desk.problems() == [("target.yaml", 3)]
    monkeypatch.setenv("TARGET_MINE", "other")
    desk.run("--yes")
    assert get_secret(TargetModel.objects.get()) == "other"
    monkeypatch.setenv("TARGET_MINE", "third")
    assert desk.plan(code=0) == []
    desk.run("--yes", "--send-secret")
    assert get_secret(TargetModel.objects.get()) == "third"


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "sk-a1b2c3", "HOME"])
def test_a_folder_asks_for_no_other_variable(desk, monkeypatch, name):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    desk.write(target=f"name: mine\nurl: https://mine.test/a\nsecret_from: {name}\n")
    assert desk.problems() == [("target.yaml", 3)]


def test_a_folder_sends_no_file_from_outside(desk, tmp_path):
    outside = tmp_path / "diary.txt"
    outside.write_text("Dear diary.\n")
    desk.path("texts.jsonl").unlink()
    desk.path("texts.txt").symlink_to(outside)
    assert desk.problems() == [("texts.txt", 0)]


# who sees it


def test_who_sees_the_task_follows_the_file(applied, settings):
    applied.edit("benchmark.yaml", "visible: false", "visible: true")
    assert applied.plan() == [("change", "benchmark.yaml")]
    applied.run("--yes")
    assert Task.objects.get().is_visible


def test_a_task_that_needs_approval_stays_private(desk, settings):
    settings.NEW_TASKS = "approval"
    desk.edit("benchmark.yaml", "visible: false", "visible: true")
    assert ("impossible", "benchmark.yaml") in desk.plan(code=1)
    desk.run("--yes", code=1)
    assert not Task.objects.get().is_visible
    assert desk.plan(code=1) == [("impossible", "benchmark.yaml")]
