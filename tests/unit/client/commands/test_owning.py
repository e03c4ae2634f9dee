"""`dynabench rounds`, `round` and `contexts`: what owners do in a shell."""

import json
import re
from pathlib import Path

import httpx
import pytest

from dynabench.client.commands import main
from tests.unit.client.commands.conftest import refusal

ROUND = {
    "number": 1, "state": "paused", "targets": ["a", "b"], "opened_at": "2026-01-02T03:04:05Z",
    "closed_at": None,
}  # fmt: skip
RELEASE = {"version": 2, "state": "done", "progress": 1.0, "message": "", "error": ""}
DATASETS = "/tasks/nli/rounds/1/datasets/"
BROUGHT = {
    "stored": 0, "new": 3, "error_count": 202, "duplicate_count": 4, "duplicates": [],
    "errors": [{"line": 2, "message": "premise is missing."}],
}  # fmt: skip


def test_rounds_are_listed(server, capsys):
    server.answers["GET /tasks/nli/rounds/"] = {"results": [ROUND], "next": None}
    assert main(["rounds", "nli"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split() == ["1", "paused", "a,", "b", "2026-01-02T03:04:05Z", "-"]
    server.answers["GET /tasks/nli/rounds/"] = {"results": [], "next": None}
    assert main(["rounds", "nli"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "state"), [("--open", "open"), ("--pause", "paused"), ("--close", "closed")]
)
def test_a_round_changes_its_state(server, capsys, option, state):
    server.answers["POST /tasks/nli/rounds/1/state/"] = {**ROUND, "state": state}
    assert main(["round", "nli", "1", option]) == 0
    assert server.body("/tasks/nli/rounds/1/state/") == {"state": state}
    assert capsys.readouterr().out == f"Round 1 of nli is {state}.\n"


def test_what_a_round_lacks_is_said(server, failing):
    server.answers["POST /tasks/nli/rounds/1/state/"] = refusal(409, "It has no contexts.")
    assert failing("round", "nli", "1", "--open") == (1, "It has no contexts.")


def test_a_round_is_released(server, capsys):
    server.answers |= {
        f"POST {DATASETS}": {**RELEASE, "state": "queued"},
        f"GET {DATASETS}": {"results": [{**RELEASE, "version": 1}, RELEASE], "next": None},
    }
    assert main(["round", "nli", "1", "--release", "--license", "cc-by-4.0"]) == 0
    assert server.body(DATASETS) == {"license": "cc-by-4.0"}
    assert re.search("Version 2 .*dynabench data nli 1\n", capsys.readouterr().out)


def test_a_release_that_fails_or_is_not_waited_for(server, failing):
    failed = {**RELEASE, "state": "failed", "error": "The disk is full."}
    asked = ["round", "nli", "1", "--release", "--license", "cc-by-4.0"]
    server.answers |= {
        f"POST {DATASETS}": RELEASE,
        f"GET {DATASETS}": {"results": [failed], "next": None},
    }
    assert failing(*asked) == (1, "The disk is full.")
    server.answers[f"GET {DATASETS}"] = KeyboardInterrupt()
    code, said = failing(*asked)
    assert (code, "dynabench data nli" in said) == (130, True)


def test_a_release_is_undone(server, capsys):
    server.answers[f"DELETE {DATASETS}1/"] = httpx.Response(204)
    assert main(["round", "nli", "1", "--undo-release"]) == 0
    assert [request.method for request in server.asked] == ["DELETE"]
    assert "round 1" in capsys.readouterr().out


def test_a_release_needs_a_licence(server, failing):
    code, said = failing("round", "nli", "1", "--release")
    assert code == 2
    assert "--license" in said
    assert not server.asked


@pytest.fixture
def file(server):
    """A file of contexts, where the person works."""
    Path("new.csv").write_text("premise\nBen came.\n")
    return "new.csv"


def test_contexts_are_brought(server, capsys, file):
    address = "/tasks/nli/rounds/1/contexts/"
    brought = {**BROUGHT, "stored": 3, "error_count": 0, "errors": []}
    server.answers[f"POST {address}"] = brought
    assert main(["contexts", "nli", "1", file]) == 0
    assert server.body(address) == {
        "format": "csv", "text": "premise\nBen came.\n", "dry_run": False, "skip_bad": False
    }  # fmt: skip
    said = "Stored: 3. Already stored: 4. Lines with errors: 0.\n"
    assert capsys.readouterr().out == said
    assert main(["contexts", "nli", "1", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == brought


@pytest.mark.parametrize(("skip", "code"), [([], 1), (["--skip-bad"], 0)])
def test_a_dry_run_names_bad_lines(server, capsys, file, skip, code):
    server.answers["POST /tasks/nli/rounds/1/contexts/"] = BROUGHT
    assert main(["contexts", "nli", "1", file, "--dry-run", *skip]) == code
    assert server.body("/tasks/nli/rounds/1/contexts/")["dry_run"] is True
    assert capsys.readouterr().out.splitlines() == [
        "New: 3. Already stored: 4. Lines with errors: 202.",
        "line 2: premise is missing.",
        "… and 201 more",
    ]


@pytest.mark.parametrize(("skip", "hinted"), [([], True), (["--skip-bad"], False)])
def test_bad_lines_are_refused_with_the_way_round_them(server, failing, file, skip, hinted):
    told = {"text": ["line 2: premise is missing."]}
    server.answers["POST /tasks/nli/rounds/1/contexts/"] = refusal(400, "No.", "invalid", told)
    code, said = failing("contexts", "nli", "1", file, *skip)
    assert ("text:" in said) != hinted
    assert (code, "line 2: premise is missing." in said) == (1, True)
    assert ("--skip-bad" in said) == hinted


def test_a_file_that_is_not_there(server, failing):
    code, said = failing("contexts", "nli", "1", "none.csv")
    assert (code, "none.csv" in said) == (2, True)
