"""What owners do with tasks, people, targets, rounds and contexts, at the real API."""

import gzip
import zipfile
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress

from dynabench.client import Invalid, NotFound, PermissionDenied, Refused
from dynabench.communities.models import Community
from tasks.members.invitation_services import create_invitation_link
from tasks.models import Round, Task, TaskProposal
from tests.support import media
from tests.support.campaigns import open_campaign
from tests.support.factories import UserFactory, scripted_target
from tests.support.studies import PLAN

PICTURES = """
version: 1
name: Pictures
goal: {text: Ask}
context: [{name: scene, type: image}]
input: [{name: question, type: text}]
output: [{name: answer, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1}
"""


@pytest.fixture
def editor(client_of, alice, nli):
    return client_of(alice, nli.task, "editor")


def test_a_task_is_made_and_hidden(client_of, alice, nli):
    alice.is_superuser = True
    alice.save()
    admin = client_of(alice)
    made = admin.create_task(code="mine", config_text=nli.task.config_text, is_visible=False)
    assert (made["code"], made["is_visible"], made["allow_try_out"]) == ("mine", False, True)
    changed = admin.change_task("mine", is_visible=True, allow_try_out=False)
    assert (changed["is_visible"], changed["allow_try_out"]) == (True, False)
    with pytest.raises(Refused) as again:
        admin.create_task(code="mine", config_text=nli.task.config_text)
    assert again.value.code == "exists"
    with pytest.raises(Invalid, match="config_text: "):
        admin.create_task(code="other", config_text=f"{nli.task.config_text}\nwrong: 1\n")


def test_tasks_are_made_by_whom_the_site_allows(editor, nli):
    with pytest.raises(PermissionDenied):
        editor.create_task(code="mine", config_text=nli.task.config_text)


def test_approval_is_requested_once(client_of, alice, nli, settings):
    settings.NEW_TASKS = "approval"
    Task.objects.update(is_unapproved=True, is_visible=False)
    club = Community.objects.create(slug="club", name="Club", is_listed=True)
    owner = client_of(alice, nli.task, "owner")
    stands = owner.approval("nli")
    assert (stands["is_needed"], stands["state"]) == (True, None)
    why = {"goal": "To find names.", "people": "My class."}
    with pytest.raises(Invalid, match="goal: "):
        owner.request_approval("nli", people="My class.")
    with pytest.raises(Invalid) as unknown:
        owner.request_approval("nli", **why, community="none")
    assert unknown.value.fields.keys() == {"community"}
    asked = owner.request_approval("nli", **why, show=False, community="club")
    assert asked == owner.approval("nli")
    assert (asked["state"], asked["show"], asked["community"]) == ("waiting", False, "club")
    assert TaskProposal.objects.get().for_community.community == club
    with pytest.raises(Refused) as again:
        owner.request_approval("nli", **why)
    Task.objects.update(is_unapproved=False)
    with pytest.raises(Refused) as needless:
        owner.request_approval("nli", **why)
    assert [again.value.code, needless.value.code] == ["waiting", "approved"]
    with pytest.raises(PermissionDenied):
        client_of(UserFactory(), nli.task, "editor").request_approval("nli", **why)


def test_members_come_change_and_go(client_of, alice, bob, nli):
    owner = client_of(alice, nli.task, "owner")
    made = owner.add_member("nli", bob.email, "viewer")
    assert (made["email"], made["role"]) == (bob.email, "viewer")
    assert owner.change_member("nli", made["id"], "editor")["role"] == "editor"
    assert {one["role"] for one in owner.members("nli")} == {"owner", "editor"}
    assert owner.remove_member("nli", made["id"]) is None
    (last,) = owner.members("nli")
    with pytest.raises(Refused):
        owner.remove_member("nli", last["id"])
    with pytest.raises(Invalid) as refused:
        owner.add_member("nli", "nobody@example.com", "viewer")
    assert list(refused.value.fields) == ["email"]


def test_a_target_is_set_up_tested_and_changed(editor):
    made = editor.add_target_model(
        "nli",
        name="rules",
        adapter="scripted",
        url="https://rules.test",
        options={"label": "neutral"},
    )
    inputs = {"premise": "Ben came.", "hypothesis": "He was there."}
    tested = editor.test_target_model("nli", made["id"], inputs)
    assert (tested["answer"]["output"], tested["failure"]) == ({"label": "neutral"}, None)
    options = {"label": "entailment"}
    assert editor.change_target_model("nli", made["id"], options=options)["options"] == options
    assert [one["name"] for one in editor.target_models("nli")] == ["rules"]
    with pytest.raises(Invalid, match="adapter: "):
        editor.add_target_model("nli", name="other", adapter="none")


def test_a_generator_is_set_and_taken_away(editor, nli):
    told = {"name": "muse", "adapter": "scripted", "url": "https://muse.test"}
    assert editor.set_generator("nli", **told)["options"] == {}
    assert editor.generator("nli")["name"] == "muse"
    editor.remove_generator("nli")
    with pytest.raises(NotFound):
        editor.generator("nli")


def test_a_configuration_is_read_tried_and_saved(editor, nli):
    before = editor.config("nli")
    text = f"{before['config_text']}\nprograms: {{judge: true}}\n"
    tried = editor.save_config("nli", text, before["version"], dry_run=True)
    assert "+programs: {judge: true}" in tried["diff"]
    assert editor.config("nli") == before
    saved = editor.save_config("nli", text, before["version"])
    assert saved["version"] == editor.config("nli")["version"] != before["version"]
    with pytest.raises(Refused) as stale:
        editor.save_config("nli", text, before["version"])
    assert stale.value.code == "stale"
    with pytest.raises(Invalid, match="config_text: "):
        editor.save_config("nli", "name: 5", saved["version"])


def test_a_round_is_planned_opened_and_closed(editor, nli):
    scripted_target(nli, label="neutral")
    made = editor.create_round("nli", targets=["scripted"], contexts_of=1, max_collected=50)
    assert (made["number"], made["state"], made["max_collected"]) == (2, "draft", 50)
    changed = editor.change_round("nli", 2, description="The second.", max_collected=None)
    assert (changed["description"], changed["max_collected"]) == ("The second.", None)
    assert editor.set_round_state("nli", 1, "closed")["state"] == "closed"
    assert editor.set_round_state("nli", 2, "open")["state"] == "open"
    with pytest.raises(Refused, match="fixed") as fixed:
        editor.change_round("nli", 2, rule="any")
    assert fixed.value.code == "fixed"
    assert [round["state"] for round in editor.rounds("nli")] == ["closed", "open"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("new.jsonl", '{"premise": "Zoë left."}\n{"premise": "Ben came."}\n'),
        ("new.csv", 'premise\n"Zoë\r\nleft."\nBen came.\n'),
    ],
)
def test_contexts_come_from_a_file(editor, nli, tmp_path, name, text):
    file = tmp_path / name
    file.write_bytes(text.encode())
    tried = editor.import_contexts("nli", 1, file, dry_run=True)
    assert (tried["new"], tried["stored"], len(editor.contexts("nli", 1))) == (2, 0, 3)
    assert editor.import_contexts("nli", 1, str(file))["stored"] == 2
    assert editor.import_contexts("nli", 1, file)["duplicate_count"] == 2
    (first, second) = editor.contexts("nli", 1)[3:]
    assert first["fields"]["premise"].startswith("Zoë")
    assert editor.retire_context("nli", 1, second["id"])["is_retired"]
    assert not editor.retire_context("nli", 1, second["id"], is_retired=False)["is_retired"]


def test_contexts_and_files_come_from_an_archive(client_of, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    round = Round.objects.create(task=Task.objects.create(code="p", config_text=PICTURES), number=1)
    editor = client_of(alice, round.task, "editor")
    file = tmp_path / "scenes.zip"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("scenes.csv", "scene,scene_alt\n1.png,Red\n")
        made.writestr("1.png", media.png())
    assert editor.import_contexts("p", 1, file)["stored"] == 1
    assert editor.contexts("p", 1)[0]["fields"]["scene"]["alt"] == "Red"
    (tmp_path / "2.png").write_bytes(media.png("blue"))
    value = client_of(alice, round.task).upload_media("p", tmp_path / "2.png", alt="Blue")
    assert (value["alt"], value["mime"]) == ("Blue", "image/png")


@pytest.mark.parametrize(
    "name",
    [
        "UP.CSV",
        "a.Tsv",
        "😀 100% #1.csv",
        "evil\u202evsc.csv",
        "dots...txt..",
        "ROWS.JSONL.GZ",
        "rows.ndjson",
        "n" * 238 + ".csv",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_contexts_come_from_a_file_of_any_name(editor, nli, tmp_path, name, encoding):
    file, lower = tmp_path / name, name.lower()
    is_json = "json" in lower
    text = '{"premise": "Zoë came."}\n' if is_json else "Zoë came.\n"
    text = text if is_json or "txt" in lower else f"premise\r\n{text}"
    data = text.encode(encoding)
    file.write_bytes(gzip.compress(data) if lower.endswith("gz") else data)
    assert editor.import_contexts("nli", 1, file)["stored"] == 1
    assert editor.contexts("nli", 1)[-1]["fields"] == {"premise": "Zoë came."}


def test_bad_lines_are_named_or_left_out(editor, nli, tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text('{"premise": "Ben came."}\n{"premise": 5}\n')
    with pytest.raises(Invalid, match="line 2: "):
        editor.import_contexts("nli", 1, file)
    assert editor.import_contexts("nli", 1, file, dry_run=True)["errors"][0]["line"] == 2
    found = editor.import_contexts("nli", 1, file, skip_bad=True)
    assert (found["stored"], found["error_count"]) == (1, 1)


def test_an_import_is_undone(editor, nli, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("premise\nBen came.\n")
    editor.import_contexts("nli", 1, file)
    (batch,) = editor.context_batches("nli", 1)
    assert batch["contexts"] == 1
    assert editor.undo_import("nli", 1, batch["id"]) is None
    assert (len(editor.contexts("nli", 1)), editor.context_batches("nli", 1)) == (3, [])


def test_a_file_that_is_none_is_refused_here(editor, tmp_path):
    with pytest.raises(ValueError, match=r"notes\.pdf: .*\.jsonl, \.csv"):
        editor.import_contexts("nli", 1, tmp_path / "notes.pdf")
    with pytest.raises(FileNotFoundError):
        editor.import_contexts("nli", 1, tmp_path / "none.csv")
    for name, data, said in (
        ("new.csv", b"", "empty"),
        ("new.csv", b"premise\n\xff", "UTF-8"),
        ("new.csv.gz", b"premise", "gzip"),
        ("new.zip.gz", b"PK", "unknown file type"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=said):
            editor.import_contexts("nli", 1, tmp_path / name)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.config("nli"),
        lambda client: client.create_round("nli"),
        lambda client: client.set_round_state("nli", 1, "closed"),
        lambda client: client.contexts("nli", 1),
    ],
)
def test_others_find_nothing(client_of, bob, nli, call):
    with pytest.raises(NotFound):
        call(client_of(bob))


def test_people_are_invited_and_join(client_of, alice, bob, nli):
    owner = client_of(alice, nli.task, "owner")
    mailed = owner.invite("nli", "carla@example.com", "judge")
    assert (mailed["email"], mailed["state"], mailed["most"]) == ("carla@example.com", "open", 1)
    assert owner.revoke_invitation("nli", mailed["id"]) is None
    link, url = create_invitation_link(task=nli.task, actor=alice, role="writer", most=1, days=1)
    assert client_of(bob).join_task(url.split("/")[-2]) == {"task": "nli"}
    with pytest.raises(Refused) as gone:
        client_of(bob).join_task(url.split("/")[-2])
    assert gone.value.code == "gone"
    told = [(one["id"], one["state"], one["accepted_by"]) for one in owner.task_invitations("nli")]
    assert told == [(link.pk, "used", [bob.email]), (mailed["id"], "revoked", [])]


def test_a_configuration_is_compared_and_brought_back(editor, nli):
    before = editor.config("nli")
    text = before["config_text"].replace("language: en", "language: de")
    now = editor.save_config("nli", text, before["version"])
    assert [one["number"] for one in editor.config_versions("nli")] == [2, 1]
    assert editor.config_version("nli", 1)["config_text"] == before["config_text"]
    assert editor.compare_configs("nli", 1) == editor.compare_configs("nli", 1, 2) == now["diff"]
    assert editor.return_config("nli", 1, now["version"])["version"] == before["version"]
    with pytest.raises(Refused) as stale:
        editor.return_config("nli", 2, now["version"])
    assert stale.value.code == "stale"


def test_members_are_asked_for_work(client_of, alice, bob, nli):
    editor, judge = client_of(alice, nli.task, "owner"), client_of(bob, nli.task, "judge")
    asked = {"kind": "judge", "emails": [bob.email], "due_on": "2099-01-01"}
    with pytest.raises(Invalid, match=alice.email):
        editor.set_duties("nli", **asked | {"emails": [alice.email]})
    with pytest.raises(Invalid, match="number"):
        editor.set_duties("nli", **asked, round=7)
    (made,) = editor.set_duties("nli", **asked, round=1)
    assert (made["email"], made["share"], made["wanted"]) == (bob.email, 1.0, 0)
    (changed,) = editor.change_duty("nli", made["id"], amount=5)
    assert (changed["amount"], changed["share"], changed["due_on"]) == (5, None, None)
    (mine,) = judge.duties()
    assert (mine["task"], mine["amount"], mine["done"], mine["state"]) == ("nli", 5, 0, "open")
    with pytest.raises(PermissionDenied):
        judge.task_duties("nli")
    assert editor.end_duty("nli", made["id"]) is None
    assert editor.task_duties("nli") == judge.duties() == []


def test_studies_are_checked_planned_frozen_and_read(client_of, alice, nli):
    owner = client_of(alice, nli.task, "owner")
    for name in ("alone", "helped"):
        open_campaign(nli.task, slug=f"arm-{name}")
    assert owner.check_study_plan("nli", PLAN.replace("caught", "cauht"))["problems"][0]["line"]
    checked = owner.check_study_plan("nli", PLAN)
    assert checked["problems"] == []
    assert owner.create_study("nli", PLAN)["state"] == "draft"
    with pytest.raises(Refused):
        owner.study_report("nli", "helped")
    changed = PLAN.replace("Do suggestions help?", "Does help help?")
    assert owner.change_study_plan("nli", "helped", changed)["plan_text"] == changed.strip()
    frozen = owner.set_study_state("nli", "helped", "frozen")
    assert frozen["plan_hash"] == owner.check_study_plan("nli", changed)["plan_hash"]
    assert [row["drawn"] for row in frozen["draws"]] == [0, 0]
    with pytest.raises(Refused):
        owner.change_study_plan("nli", "helped", PLAN)
    assert owner.study_report("nli", "helped")["plan_hash"] == frozen["plan_hash"]
    assert owner.set_study_state("nli", "helped", "closed")["state"] == "closed"
    assert [one["code"] for one in owner.studies("nli")] == ["helped"]
    assert owner.study("nli", "helped")["state"] == "closed"


def test_campaigns_are_read_opened_and_closed(client_of, alice, nli):
    owner = client_of(alice, nli.task, "owner")
    open_campaign(nli.task, state="draft", ethics="Approved.")
    (one,) = owner.campaigns("nli")
    assert (one["slug"], one["state"]) == ("study", "draft")
    with pytest.raises(Invalid):
        owner.set_campaign_state("nli", "study", "open")
    assert owner.set_campaign_state("nli", "study", "open", "Alice")["state"] == "open"
    with pytest.raises(Refused):
        owner.set_campaign_state("nli", "study", "open", "Alice")
    assert owner.campaign("nli", "study")["numbers"]["taken"] == 0
    with pytest.raises(Invalid):
        owner.choose_campaign_rounds("nli", "study", [9])
    with pytest.raises(Invalid):  # what counts cannot become less
        owner.choose_campaign_rounds("nli", "study", [1])
    assert owner.choose_campaign_rounds("nli", "study", [])["rounds"] == []
    assert owner.set_campaign_state("nli", "study", "closed")["state"] == "closed"


def test_a_study_is_set_up_tried_and_opened(client_of, alice, settings):
    settings.NEW_TASKS = "everybody"
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    owner = client_of(alice)
    folder = Path(__file__).parents[3] / "docs/studies"
    plan = (folder / "four-arms.yaml").read_text()
    made = owner.set_up_study(plan, (folder / "four-arms-cases.jsonl").read_text())
    names = made["task"], made["code"]
    assert owner.simulate_study(*names)["state"] == "queued"
    checked = owner.check_study_plan(names[0], plan)
    assert owner.study_power(*names)["plan_hash"] == checked["plan_hash"]
    assert owner.start_study_pilot(*names, people=2)["people"] == 2
    assert owner.study_pilot(*names)["state"] == "queued"
    owner.delete_study_pilot(*names)
    assert owner.open_study(*names, "Dr Ito")["state"] == "frozen"
