"""`dynabench mcp` with the official client: stdio and streamable HTTP, at a server that answers."""

import asyncio
import json
import re
import zipfile

import httpx
import pytest

from core.accounts.models import confirm_address
from core.accounts.tokens import create_token
from dynabench.client.agents.guides import GUIDES
from tasks.models import Context, TargetModel, Task, TaskMember
from tasks.services import OFFICIAL_FOLDER
from tests.support.agents import TRANSPORTS, Agent, ask, http_client, http_server, refused
from tests.support.evaluations import set_version, without_deltas
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.hub_models import model_hub, use_hub
from tests.support.serving_models import tiny_model

TEXT = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
CONTEXTS = "\n".join(json.dumps({"premise": f"It rained on day {day}."}) for day in range(3))
ABSENT = "11111111-1111-4111-8111-111111111111"
# A tool that writes, with arguments that its schema takes.
WRITING = {
    "save_configuration": ("own", {"task": "nli", "config_text": "a: 1", "version": "x"}),
    "check_configuration": ("own", {"config_text": "a: 1"}),
    "create_task": ("own", {"code": "new", "config_text": "a: 1"}),
    "add_target": ("own", {"task": "nli", "name": "n", "url": "https://a.test", "adapter": "http"}),
    "create_round": ("own", {"task": "nli", "targets": ["n"]}),
    "change_round": ("own", {"task": "nli", "round": 1, "targets": ["n"]}),
    "check_import": ("own", {"task": "nli", "round": 1, "text": CONTEXTS}),
    "import_contexts": ("own", {"task": "nli", "round": 1, "text": CONTEXTS}),
    "undo_import": ("own", {"task": "nli", "round": 1, "import_id": 1}),
    "submit_hub_model": (
        "submit", {"task": "nli", "name": "n", "source": "a/b", "revision": "0" * 40},
    ),
    "submit_predictions": (
        "submit", {"task": "nli", "evaluation_set": "s", "name": "n", "predictions": "{}"},
    ),
}  # fmt: skip


@pytest.fixture(params=TRANSPORTS)
def agent(request, tmp_path, live_server):
    return Agent(request.param, tmp_path, live_server.url)


def key_of(user, *scopes) -> str:
    return create_token(user=user, name="agent", scopes=[*scopes], days=1)[1]


@pytest.mark.django_db(transaction=True)
def test_what_is_offered(agent):
    async def look(client):
        listed = (await client.list_tools()).tools
        resources = (await client.list_resources()).resources
        read = [(await client.read_resource(one.uri)).contents[0] for one in resources]
        return listed, {str(one.uri): one.text for one in read}

    tools, resources = agent.run(look)
    for tool in tools:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", tool.name)
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["properties"].keys() >= {"untrusted", "cut"}
        hints = tool.annotations
        assert None not in (
            hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint
        )  # fmt: skip
    writing = {tool.name for tool in tools if not tool.annotations.read_only_hint}
    assert writing == WRITING.keys() - {"check_import", "check_configuration"}
    assert "# The configuration of a task" in resources["dynabench://guide/task-config"]
    assert "# Glossary" in resources["dynabench://guide/glossary"]
    schema = json.loads(resources["dynabench://schema/task-config"])
    assert schema["properties"]["verdict"]


@pytest.mark.django_db(transaction=True)
def test_from_a_wrong_draft_to_texts_in_a_round(agent, settings):
    settings.NEW_TASKS = "everybody"
    owner = UserFactory()
    confirm_address(owner)
    other = TaskFactory(code="other", config_text=TEXT)
    TargetModel.objects.create(task=other, name="starter", adapter="http", source="org/a@main")

    async def set_up(client):
        account = await ask(client, "read_account")
        assert account["token"]["scopes"] == ["read", "own"]
        wrong = await refused(client, "check_configuration", config_text=TEXT + "\nmetric: f1\n")
        assert wrong["status"] == 422
        (line,) = wrong["fields"]["config_text"]
        assert "`metric`" in line
        draft = await ask(client, "check_configuration", config_text=TEXT, new_code="mine")
        assert (draft["served_models"], draft["converted_text"]) == (["other/starter"], "")
        made = await ask(client, "create_task", code="mine", config_text=TEXT)
        assert made["url"].endswith("/own/mine/")
        again = await refused(client, "create_task", code="mine", config_text=TEXT)
        assert again["code"] == "exists"

        stored = await ask(client, "read_configuration", task="mine")
        assert stored["untrusted"] == ["config_text"]
        text = stored["config_text"].replace("language: en", "language: de")
        checked = await ask(client, "check_configuration", config_text=text, task="mine")
        assert "+language: de" in checked["diff"]
        change = {"task": "mine", "config_text": text}
        await ask(client, "save_configuration", **change, version=stored["version"])
        stale = await refused(client, "save_configuration", **change, version="0" * 64)
        assert stale["code"] == "stale"

        (round,) = (await ask(client, "list_rounds", task="mine"))["rounds"]
        assert round["state"] == "draft"
        place = {"task": "mine", "round": 1}
        new = {"task": "mine", "name": "starter"}
        odd = await refused(client, "add_target", **new, served_model="other/none")
        assert "other/starter" in odd["message"]
        added = await ask(client, "add_target", **new, served_model="other/starter")
        assert added["target"]["source"] == "org/a@main"
        plan = await ask(client, "change_round", **place, targets=["starter"], max_collected=50)
        assert (plan["round"]["targets"], plan["round"]["max_collected"]) == (["starter"], 50)
        await import_texts(client, place)

    agent.run(set_up, key_of(owner, "read", "own"))
    task = Task.objects.get(code="mine")
    assert task.config.language == "de"
    assert not task.is_visible
    assert Context.objects.filter(round__task=task).count() == 3


async def import_texts(client, place):
    bad = await ask(client, "check_import", **place, text=CONTEXTS + '\n{"premise": 7}')
    assert [error["line"] for error in bad["errors"]] == [4]
    error = await refused(client, "import_contexts", **place, text=CONTEXTS + "\n{")
    assert "line 4" in error["fields"]["text"][0]
    assert (await ask(client, "import_contexts", **place, text=CONTEXTS))["stored"] == 3
    assert (await ask(client, "import_contexts", **place, text=CONTEXTS))["stored"] == 0
    imports = (await ask(client, "list_imports", **place))["imports"]
    kept = [one for one in imports if one["contexts"] == 3]
    await ask(client, "undo_import", **place, import_id=kept[0]["id"])
    await ask(client, "import_contexts", **place, text=CONTEXTS)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_predictions_are_followed_to_the_score(transport, server, tmp_path):
    task = TaskFactory(code="nli")
    without_deltas(task)
    RoundFactory(task=task)
    set_version(task, "control", size=12, may_leave=True)
    owner = UserFactory()
    # Who sees right answers that no release has published.
    TaskMember.objects.create(task=task, user=owner, role="editor")

    async def submit(client):
        found = await ask(client, "list_tasks", search="nli")
        assert [one["code"] for one in found["tasks"]] == ["nli"]
        assert found["untrusted"] == ["tasks"]
        assert (await ask(client, "read_board", task="nli"))["board"]["rows"] == []
        assert (await ask(client, "read_quota", task="nli"))["left"]
        place = {"task": "nli", "evaluation_set": "control"}
        rows = await ask(client, "read_inputs", **place, start=10)
        assert (rows["total"], len(rows["inputs"])) == (12, 2)
        rows = await ask(client, "read_inputs", **place)
        answers = [{"id": row["id"], "output": {"label": "neutral"}} for row in rows["inputs"]]
        lines = "\n".join(map(json.dumps, answers))
        # Answers that lack one, and what the site says about them.
        short = await ask(
            client, "submit_predictions", **place, name="short", predictions=lines[:-20]
        )
        failed = await follow(client, short["model_id"])
        assert failed["results"]["error"]["sentence"]
        await ask(client, "read_log", model_id=short["model_id"])

        sent = await ask(client, "submit_predictions", **place, name="all", predictions=lines)
        done = await follow(client, sent["model_id"])
        assert done["results"]["scores"]["control"]["accuracy"]["n"] == 12
        board = (await ask(client, "read_board", task="nli", is_mine_included=True))["board"]
        assert [row["model"] for row in board["rows"]] == ["all"]
        assert {one["name"] for one in (await ask(client, "list_models"))["models"]} == {
            "short", "all",
        }  # fmt: skip
        (run,) = (await ask(client, "list_runs", model_id=sent["model_id"]))["runs"]
        wrong = await ask(client, "list_wrong_answers", model_id=sent["model_id"], run_id=run["id"])
        assert wrong["untrusted"] == ["examples"]

    Agent(transport, tmp_path, server).run(submit, key_of(owner, "read", "submit"))


@pytest.mark.django_db(transaction=True)
def test_models_of_a_hub_and_of_a_folder_are_followed_to_the_score(server, tmp_path, monkeypatch):
    task = TaskFactory(code="nli")
    without_deltas(task)
    RoundFactory(task=task)
    set_version(task, "control", size=12, may_leave=True)
    owner = UserFactory()
    confirm_address(owner)
    opened = tmp_path / "open"
    tiny_model(opened / "tiny", "pair-classification")
    uploaded = tiny_model(tmp_path / "other", "pair-classification", seed=1)
    commit = "0123456789abcdef" * 2 + "01234567"

    async def submit(client):
        hub = {"task": "nli", "name": "hub", "source": "org/tiny"}
        sent = [
            await ask(client, "submit_hub_model", **hub, revision=commit),
            await ask(client, "submit_model_folder", task="nli", name="folder", path="tiny"),
        ]
        for one in sent:
            done = await follow(client, one["model_id"])
            assert done["results"]["scores"]["control"]["accuracy"]["n"] == 12
        # A commit that the hub lacks ends with a reason, not with a model.
        absent = await ask(client, "submit_hub_model", **hub | {"name": "no"}, revision="f" * 40)
        failed = await follow(client, absent["model_id"])
        assert "org/tiny" in failed["results"]["error"]["sentence"]
        return [one["name"] for one in (await ask(client, "list_models"))["models"]]

    with model_hub("org/tiny", commit, uploaded) as address:
        use_hub(monkeypatch, address)
        key = key_of(owner, "read", "submit")
        names = Agent("stdio", tmp_path, server).run(submit, key, "--folder", str(opened))
    assert {*names} == {"hub", "folder", "no"}


async def follow(client, model_id):
    while True:
        answer = await ask(client, "follow_model", model_id=model_id, wait_seconds=10)
        if answer["is_over"]:
            return answer


@pytest.mark.django_db(transaction=True)
def test_a_token_without_the_scope_is_told_its_name(agent):
    task = TaskFactory(code="nli")
    RoundFactory(task=task)
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")

    async def try_all(client):
        for tool, (scope, arguments) in WRITING.items():
            error = await refused(client, tool, **arguments)
            assert (error["code"], error["scope"]) == ("scope", scope), tool
            assert f" {scope}." in error["message"]
        await ask(client, "read_configuration", task="nli")
        listed = (await client.list_tools()).tools
        return {tool.name: tool.meta["dynabench/scope"] for tool in listed}

    told = agent.run(try_all, key_of(owner, "read"))
    assert {tool: told[tool] for tool in WRITING} == {
        tool: scope for tool, (scope, _) in WRITING.items()
    }
    assert not Context.objects.exists()

    async def read_all(client):
        for tool, arguments in (("read_account", {}), ("read_configuration", {"task": "nli"})):
            error = await refused(client, tool, **arguments)
            assert (error["code"], error["scope"]) == ("scope", "read"), tool

    # A key that may write doesn't read.
    agent.run(read_all, key_of(owner, "submit"))


@pytest.mark.django_db(transaction=True)
def test_hostile_arguments(agent):
    RoundFactory(task=TaskFactory(code="nli"))
    secret = agent.folder / "secret.txt"
    secret.write_text("a secret")
    (agent.folder / "open").mkdir()
    (agent.folder / "open" / "link.jsonl").symlink_to(secret)
    attacker = UserFactory()
    confirm_address(attacker)
    key = key_of(attacker, "read", "submit", "own")
    odd = [
        ("read_task", {"task": "../me"}), ("read_task", {"task": "nli/rounds/1"}),
        ("read_task", {"task": "nli?x=1"}), ("read_task", {"task": "a" * 5000}),
        ("read_task", {"task": ["nli"]}), ("read_task", {"task": "nli\n"}), ("read_task", {}),
        ("read_task", {"task": "nli", "dry_run": True}), ("read_log", {"model_id": "../me"}),
        ("list_rounds", {"task": "nli\0"}), ("read_snapshot", {"task": "nli", "number": -1}),
        ("read_snapshot", {"task": "nli", "number": 10**40}),
        ("check_configuration", {"config_text": "a" * 300_000}),
        ("submit_hub_model", {"task": "nli", "name": "n", "source": "a/../b", "revision": "main"}),
        ("follow_model", {"model_id": ABSENT, "wait_seconds": 10**9}),
    ]  # fmt: skip
    files = {"task": "nli", "evaluation_set": "s", "name": "n"}

    async def attack(client):
        for tool, arguments in odd:
            assert (await refused(client, tool, **arguments))["code"] == "arguments", arguments
        assert (await refused(client, "delete_task", task="nli"))["code"] == "unknown_tool"
        assert (await refused(client, "follow_model", model_id=ABSENT))["code"] == "not_found"
        deep = "[" * 5000
        assert (await refused(client, "check_configuration", config_text=deep))["status"] == 422
        for path in ("../secret.txt", str(secret), "link.jsonl", "none.jsonl", "a\0b"):
            error = await refused(client, "submit_predictions", **files, path=path)
            assert error["code"] == "invalid"
            assert "a secret" not in str(error)
        both = await refused(
            client, "submit_predictions", **files, path="none.jsonl", predictions="{}"
        )
        assert both["code"] == "invalid"
        assert await ask(client, "list_tasks")

    agent.run(attack, key, "--folder", str(agent.folder / "open"))


def test_a_site_that_is_down(tmp_path):
    async def look(client):
        assert (await refused(client, "list_tasks"))["code"] == "unreachable"

    for transport in TRANSPORTS:
        Agent(transport, tmp_path, "http://127.0.0.1:9").run(look)


@pytest.mark.django_db(transaction=True)
def test_over_http_each_request_has_its_own_key(tmp_path, live_server):
    RoundFactory(task=TaskFactory(code="nli"))
    ours, theirs = (
        create_token(user=UserFactory(), name=name, scopes=["read"], days=1)[1]
        for name in ("ours", "theirs")
    )

    async def whose(address, key, mode="auto"):
        async with http_client(address, key, mode) as client:
            result = await client.call_tool("read_account", {})
            public = await ask(client, "list_tasks")
            return result.structured_content, [task["code"] for task in public["tasks"]]

    async def all_of(address):
        return [
            await whose(address, None),
            await whose(address, theirs),
            await whose(address, theirs, "legacy"),  # with a handshake, as before 2026-07
        ]

    with http_server(tmp_path, live_server.url, key=ours) as address:
        nobody, other, older = asyncio.run(all_of(address))
    assert nobody[0]["error"]["status"] == 401
    assert nobody[1] == other[1] == ["nli"]
    assert other[0]["token"]["name"] == older[0]["token"]["name"] == "theirs"


def test_the_wheel_has_the_guides(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for guide, *_ in GUIDES:
        assert f"dynabench/_server/docs/{guide}.md" in names


def test_pages_of_browsers_are_refused(tmp_path):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    with http_server(tmp_path, "http://127.0.0.1:9", "--allow-host", "mcp.example.org") as address:
        found = {}
        for name, headers in {
            "plain": {}, "here": {"Origin": "http://localhost:3000"},
            "page": {"Origin": "https://evil.example"}, "null": {"Origin": "null"},
            "like": {"Origin": "http://localhost.evil.example:80"},
            "rebound": {"Host": "evil.example"}, "proxy": {"Host": "mcp.example.org"},
        }.items():  # fmt: skip
            found[name] = httpx.post(address, json=message, headers=accept | headers).status_code
        too_long = httpx.post(address, content=b" " * (5 << 20), headers=accept).status_code
    assert found["page"] == found["null"] == found["like"] == 403
    assert found["rebound"] == 421
    assert {found["plain"], found["here"], found["proxy"]}.isdisjoint({403, 421})
    assert too_long in (400, 413)
