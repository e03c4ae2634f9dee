"""How the command `dynabench` ends when something is wrong, and that its pages are true."""

import json
import os
import re
import shlex
import subprocess
import sys

import httpx
import pytest

from dynabench.client.commands import main, make_parser
from dynabench.client.errors import DynabenchError
from tests.unit.client.commands.conftest import ID, ROOT, refusal


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (httpx.ConnectError("Connection refused"), 3, "cannot be reached: Connection refused"),
        (httpx.ConnectError(""), 3, "cannot be reached"),
        (refusal(403, "This token lacks the scope read.", "scope"), 3, "Run: dynabench login"),
        (refusal(403, "You may not."), 3, "You may not."),
        (refusal(404, "Not found.", "not_found"), 1, "Not found. Check the name"),
        (refusal(409, "The round is closed."), 1, "The round is closed."),
        (refusal(500, "It failed. Tell us the number 17."), 3, "the number 17"),
        (httpx.Response(200, text="<html>"), 3, "not a response of a Dynabench server"),
        (httpx.Response(302, headers={"Location": "https://x.test"}), 3, "https://x.test"),
    ],
)
def test_each_failure_is_a_sentence_and_an_exit_code(server, failing, capsys, answer, code, said):
    server.answers["GET /me/models/"] = answer
    found, text = failing("status")
    assert found == code
    assert said in text
    assert main(["status", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["error"]["message"] == text


def listed(*rows):
    return {"results": [*rows], "next": None}


@pytest.mark.parametrize(
    ("arguments", "unknown", "others"),
    [
        (["data", "nlu"], "nlu", "nli"),
        (["data", "nli", "--inputs", "round-7"], "round-7", "round-1"),
        (["data", "nli", "7"], "7", "2"),
        (["submit", "--hub", "a/b@c", "--task", "nlu"], "nlu", "nli"),
        (["submit", "--hub", "a/b@c", "--community", "word"], "word", "words"),
        (["results", ID], ID, "dynabench status"),
        (["compare", ID, ID], ID, "dynabench status"),
    ],
)
def test_which_name_is_not_there_and_which_are(server, failing, capsys, arguments, unknown, others):
    server.answers |= {
        "GET /tasks/": listed({"code": "nli"}, {"code": "sentiment"}),
        "GET /tasks/nli/evaluation-sets/": listed({"name": "round-1"}, {"name": "control"}),
        "GET /tasks/nli/rounds/": listed({"number": 1}, {"number": 2}),
        "GET /communities/": listed({"slug": "words"}),
    }
    missing = refusal(404, "Not found.", "not_found")
    server.otherwise = missing
    code, said = failing(*arguments)
    assert code == 1
    assert unknown in said
    assert others in said
    assert "inputs.jsonl" not in said  # no file is named that does not come


@pytest.mark.parametrize("error", [DynabenchError(""), OSError(), ValueError()])
def test_a_failure_without_words_is_told_all_the_same(server, failing, error, monkeypatch):
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr("dynabench.client.commands.models.open_client", fail)
    code, said = failing("status")
    assert code == 1
    assert said


def test_an_interrupt_is_no_traceback(server, failing, monkeypatch):
    def stop(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynabench.client.commands.models.open_client", stop)
    assert failing("status")[0] == 130


def test_who_has_seen_enough_is_left_in_peace(server):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dynabench.client", "logout"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["status", "no-id"],
        ["submit", "--task", "nli"],
        ["submit", "folder", "--image", "x.tar", "--task", "nli"],
        ["leaderboard", "nli", "--weights", "accuracy"],
    ],
)
def test_wrong_arguments_end_with_2(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_an_address_needs_its_scheme(failing):
    code, said = failing("whoami", "--server", "dynabench.test")
    assert code == 2
    assert "http://" in said


def command_lines() -> list[tuple[str, str]]:
    """Each line of a block in the documentation that calls the command, and where it stands."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    pages += (ROOT / "dynabench" / "client" / "examples").rglob("README.md")
    line = re.compile(r"(?m)^(?:\$ )?dynabench ([^\n#]+)|`dynabench (?!-)([^`]+ [^`]+)`")
    return [
        (page.name, first or second)
        for page in pages
        for first, second in line.findall(page.read_text().replace("\\\n", " "))
    ]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_documented_command_lines_are_understood(page, line):
    words = [ID if word.startswith(("MODEL", "6")) else word for word in shlex.split(line)]
    make_parser().parse_args(words)
