"""The command `dynabench` against a server of fixed answers: what it says, and how it ends."""

import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynabench.client.client import DynabenchClient
from dynabench.client.commands import main, make_parser, shared
from dynabench.client.commands import test as test_command
from dynabench.client.errors import DynabenchError
from dynabench.client.keys import keys_file
from evaluation.asked import answers_for
from tasks.schema import TaskConfig, load_config

ROOT = Path(__file__).parents[3]
OFFICIAL = ROOT / "tasks" / "official"
SERVER = "http://dynabench.test"
KEY = "dyna_verysecret"
ID = "6a3f0c1e-58a7-4a43-9a53-0b1f6b0c8a11"
TOKEN = {"name": "laptop", "scopes": ["read", "submit"], "expires_at": "2099-01-02T03:04:05Z"}
NLI = {
    "kind": "pair-classification",
    "type": "multiclass",
    "fields": ["premise", "hypothesis"],
    "output": "label",
    "labels": ["entailment", "neutral", "contradiction"],
}
PAIRS = [{"premise": f"Ann has {n} cats.", "hypothesis": "Ann has a cat."} for n in range(5)]
RUN = {
    "id": ID, "evaluation_set": "control", "version": 2, "suite": "plain", "state": "failed",
    "error": "It needed too much.",
}  # fmt: skip
RESULTS = {
    "model": ID, "name": "mine", "task": "nli", "phase": "scored", "is_over": True,
    "sentence": "Scored on every set.", "dynascore": 41.25, "dynascore_low": 39.5,
    "dynascore_high": 43.0, "rank": "2=", "round1_acc": None,
    "scores": {"control": {"accuracy": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 90}}},
    "notes": ["round1_acc: round 1 is not over."], "error": None,
}  # fmt: skip


class Server:
    """Answers by method and path; notes what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self.answers.get(f"{request.method} {request.url.path.removeprefix('/api/v1')}")
        if isinstance(found, BaseException):
            raise found
        if isinstance(found, httpx.Response):
            return found
        return httpx.Response(200, json=found) if found else refusal(404, "There is no such thing.")

    def body(self, path: str) -> Any:
        """What was posted there last."""
        posts = [r for r in self.asked if r.method == "POST" and r.url.path == f"/api/v1{path}"]
        return json.loads(posts[-1].content)


def refusal(status: int, message: str, code: str = "refused") -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": message, "fields": {}}})


@pytest.fixture
def server(tmp_path, monkeypatch) -> Server:
    """The server, which the environment names, and an empty folder to work in."""
    found = Server()
    own = partial(DynabenchClient, transport=httpx.MockTransport(found))
    monkeypatch.setattr(shared, "DynabenchClient", own)
    monkeypatch.setenv("DYNABENCH_URL", SERVER)
    monkeypatch.chdir(tmp_path)
    found.answers["GET /me/"] = {"pseudonym": "w-7f3k2m", "token": TOKEN}
    return found


@pytest.fixture
def failing(server, capsys):
    """`failing("whoami")`: the exit code, and what it says of its failure."""

    def run(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        assert code != 0
        assert out == "" or "--json" in arguments
        assert "Error: " in err
        assert "Traceback" not in err
        assert "Error: None" not in err
        return code, err.split("Error: ", 1)[1].strip()

    return run


# login, logout, whoami


def test_a_key_that_the_server_takes_is_kept_for_its_owner_alone(server, capsys):
    assert main(["login", "--key", KEY]) == 0
    assert stat.S_IMODE(keys_file().stat().st_mode) == 0o600
    assert main(["whoami"]) == 0
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"
    out, err = capsys.readouterr()
    assert "You are w-7f3k2m at http://dynabench.test." in out
    assert "may read, submit and ends on 2099-01-02" in out
    assert KEY not in out + err


def test_a_key_may_come_from_standard_input(server, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{KEY}\n"))
    assert main(["login"]) == 0
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"


def test_no_key_is_no_login(failing, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert failing("login") == (
        2, "No key was given. Make one at http://dynabench.test/account/tokens/."
    )  # fmt: skip


def test_a_key_that_the_server_refuses_is_not_kept(server, failing):
    server.answers["GET /me/"] = refusal(401, "This token is unknown or was revoked.")
    code, said = failing("login", "--key", KEY)
    assert (code, said) == (3, "This token is unknown or was revoked. Then: dynabench login")
    assert not keys_file().exists()


def test_logout_forgets_the_key(server, capsys):
    main(["login", "--key", KEY])
    assert main(["logout"]) == 0
    assert KEY not in keys_file().read_text()
    assert main(["logout", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.partition("page.\n")[2])["deleted"] is False


def test_a_variable_that_goes_before_the_login_is_named(server, capsys, monkeypatch):
    monkeypatch.setenv("DYNABENCH_API_KEY", "dyna_old")
    assert main(["login", "--key", KEY]) == 0
    assert "DYNABENCH_API_KEY is another one" in capsys.readouterr().err


# How failures end


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (httpx.ConnectError("Connection refused"), 3, "cannot be reached: Connection refused"),
        (httpx.ConnectError(""), 3, "cannot be reached"),
        (refusal(403, "This token lacks the scope read.", "scope"), 3, "Then: dynabench login"),
        (refusal(403, "You may not."), 3, "You may not."),
        (refusal(404, "Not found.", "not_found"), 1, "Not found. Check the name"),
        (refusal(409, "The round is closed."), 1, "The round is closed."),
        (refusal(500, "It failed. Tell us the number 17."), 3, "the number 17"),
        (httpx.Response(200, text="<html>"), 3, "is none of a Dynabench server"),
        (httpx.Response(302, headers={"Location": "https://x.test"}), 3, "https://x.test"),
    ],
)
def test_each_failure_is_a_sentence_and_an_exit_code(server, failing, answer, code, said):
    server.answers["GET /me/models/"] = answer
    found, text = failing("status")
    assert found == code
    assert said in text


@pytest.mark.parametrize("error", [DynabenchError(""), OSError(), ValueError()])
def test_a_failure_without_words_is_told_all_the_same(server, failing, error, monkeypatch):
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr("dynabench.client.commands.models.client_for", fail)
    assert failing("status") == (1, "It failed and nothing says why. Please report it.")


def test_an_interrupt_is_no_traceback(server, failing, monkeypatch):
    def stop(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynabench.client.commands.models.client_for", stop)
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


# init


def of_task(code: str) -> tuple[TaskConfig, dict[str, Any]]:
    """An official task, and what the server tells of it before a model is made."""
    from evaluation.training_rows import shape_of

    config = load_config((OFFICIAL / code / "task.yaml").read_text())
    shape = shape_of(config)
    kind = config.component(shape.answer).type
    cases = [*config.examples.good, *config.examples.bad][:5]
    inputs = [{name: {**c.context, **c.input}[name] for name in shape.fields} for c in cases]
    labels = list(shape.labels) if shape.labels else None
    model = {"kind": shape.kind, "type": kind, "fields": list(shape.fields), "labels": labels}
    return config, {"inputs": inputs, "model": {**model, "output": shape.answer}}


@pytest.mark.parametrize("code", ["nli", "qa", "sentiment", "hate-speech"])
def test_the_example_image_answers_as_the_server_wants_it(server, code):
    config, told = of_task(code)
    server.answers[f"GET /tasks/{code}/check-inputs/"] = told
    assert main(["init", code, "mine", "--image"]) == 0
    done = subprocess.run(
        [sys.executable, "predict.py", "examples.jsonl"],
        cwd="mine",
        capture_output=True,
        check=True,
    )
    shapes = Path("mine", "answers.jsonl").read_bytes()
    for written in (done.stdout, shapes):
        answers = answers_for(config, [f"example-{n}" for n in range(1, 6)])
        for line in written.splitlines():
            answers.take(line)
        assert answers.missing() == 0
    readme = Path("mine", "README.md").read_text()
    assert f"dynabench test mine:1 --task {code}" in readme
    assert "$" not in readme


def test_a_folder_has_what_makes_a_model(server, capsys, monkeypatch):
    server.answers["GET /tasks/nli/check-inputs/"] = {"inputs": PAIRS, "model": NLI}
    monkeypatch.setattr("dynabench.client.commands.init.find_spec", lambda name: None)
    assert main(["init", "nli"]) == 0
    assert "pip install 'dynabench-client[test]'" in capsys.readouterr().out
    files = {path.name for path in Path("nli-model").iterdir()}
    assert files == {"README.md", "answers.jsonl", "examples.jsonl", "make_model.py", "task.json"}
    assert json.loads(Path("nli-model/task.json").read_text()) == {"task": "nli", **NLI}


def test_nothing_is_written_over(server, failing):
    server.answers["GET /tasks/nli/check-inputs/"] = {"inputs": PAIRS, "model": NLI}
    Path("mine").mkdir()
    Path("mine", "README.md").write_text("My own.")
    assert failing("init", "nli", "mine")[1].startswith("mine is there already.")
    assert Path("mine", "README.md").read_text() == "My own."


@pytest.mark.parametrize(
    ("type", "arguments", "said"),
    [("text", [], "--image"), ("multilabel", ["--image"], "answers of the type multilabel")],
)
def test_what_has_no_example_is_said(server, failing, type, arguments, said):
    model = {**NLI, "kind": None, "type": type, "labels": None}
    server.answers["GET /tasks/odd/check-inputs/"] = {"inputs": PAIRS, "model": model}
    assert said in failing("init", "odd", *arguments)[1]
    assert not Path("odd-model").exists()
    assert not Path("odd-image").exists()


# test


@pytest.fixture
def checked(server, monkeypatch):
    """`checked(report)`: the check of a folder says so; what it was asked for is returned."""
    limits = {"memory_gib": 4, "cpus": 2, "seconds": 300}
    told = {"inputs": PAIRS, "config_text": "name: NLI\n", **limits}
    server.answers["GET /tasks/nli/check-inputs/"] = told
    Path("model").mkdir()
    for name in ("config.json", "model.safetensors", "training_args.bin"):
        Path("model", name).write_text("{}")
    asked: list[Any] = []

    def prepare(stdout: str, stderr: str = "") -> list[Any]:
        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            names = sorted(path.name for path in Path(command[3]).iterdir())
            text = Path(command[4].partition("=")[2]).read_text()
            asked.append((names, text, command[6:], options["cwd"]))
            return subprocess.CompletedProcess(command, 0, stdout, stderr)

        monkeypatch.setattr(test_command.subprocess, "run", run)
        return asked

    return prepare


def test_a_good_model_would_be_accepted(checked, capsys):
    answers = [{"answer": "neutral", "prob": {"neutral": 0.75}}, {"answer": "a", "prob": None}]
    report = {
        "ok": True, "answers": answers, "warnings": ["Slow."], "runner": "process",
        "seconds": 4.25, "peak_bytes": 2**29,
    }  # fmt: skip
    asked = checked(json.dumps(report))
    assert main(["test", "model", "--task", "nli", "--runner", "process"]) == 0
    [(names, config, arguments, root)] = asked
    assert names == ["config.json", "model.safetensors"]
    assert config == "name: NLI\n"
    assert arguments == [
        "--memory-gib=4", "--cpus=2", "--adapter=jsonl", "--runner=process"
    ]  # fmt: skip
    assert (root / "evaluation" / "checking.py").exists()
    out, err = capsys.readouterr()
    assert "model would be accepted: it answered 2 examples." in out
    assert "1  neutral  (0.75)" in out
    assert "Runner process: 4.2 s, 0.50 GiB of memory." in out
    assert "training_args.bin is left out" in err


@pytest.mark.parametrize(
    ("outcome", "code"), [("rejected", 1), ("timeout", 1), ("infrastructure", 2)]
)
def test_a_bad_model_is_refused_in_the_words_of_the_server(checked, failing, outcome, code):
    report = {"ok": False, "outcome": outcome, "message": "Line 1: no JSON.", "log": "loading\n"}
    checked(json.dumps(report))
    assert failing("test", "model", "--task", "nli") == (code, "Line 1: no JSON.")
    assert failing("test", "model", "--task", "nli", "--json") == (code, "Line 1: no JSON.")


def test_a_check_that_breaks_says_what_to_install(checked, failing):
    checked("", "Traceback …\nModuleNotFoundError: No module named 'yaml'")
    code, said = failing("test", "model", "--task", "nli")
    assert code == 2
    assert "No module named 'yaml'" in said
    assert "pip install 'dynabench-client[test]'" in said


def test_what_the_check_needs_is_named_before_anything_is_asked(server, failing, monkeypatch):
    monkeypatch.setattr(test_command, "find_spec", lambda name: name != "docker" or None)
    code, said = failing("test", "no-such-folder", "--task", "nli")
    assert code == 2
    assert said == (
        "There is no folder no-such-folder. If it is an image, the check lacks docker on this "
        "machine. Install what it needs: pip install 'dynabench-client[test]'"
    )
    assert server.asked == []


def test_a_folder_without_a_configuration_is_refused(server, failing, checked):
    Path("model", "config.json").unlink()
    code, said = failing("test", "model", "--task", "nli")
    assert code == 1
    assert "config.json is missing in model. Save model and tokenizer" in said
    Path("model", "inner").mkdir()
    Path("model", "inner", "config.json").write_text("{}")
    assert failing("test", "model", "--task", "nli")[1].endswith("Name model/inner.")


def test_a_folder_that_makes_an_image_is_built_first(server, failing, checked):
    Path("model", "Dockerfile").write_text("FROM scratch\n")
    code, said = failing("test", "model", "--task", "nli")
    assert code == 2
    assert "docker build -t name:1 model" in said


# submit, status, logs, results


@pytest.fixture
def accepting(server) -> Server:
    """A server that takes every model, and scores it."""
    server.answers |= {
        "GET /tasks/nli/quota/": {"left": 3},
        "GET /uploads/": {"results": [], "next": None},
        "POST /uploads/": {"id": "u1", "received": 0, "size": 3, "piece_bytes": 2},
        "PUT /uploads/u1/": {"received": 3},
        "POST /tasks/nli/models/": {"id": ID},
        f"GET /models/{ID}/results/": RESULTS,
        f"POST /models/{ID}/publish/": {"id": ID},
    }
    Path("answers.jsonl").write_text("{}\n")
    return server


def test_a_model_is_handed_in_followed_and_published(accepting, capsys):
    wanted = ["--task", "nli", "--name", "mine", "--description", "Mine.", "--publish"]
    assert main(["submit", "--predictions", "answers.jsonl", "--set", "round-1", *wanted]) == 0
    assert accepting.body("/tasks/nli/models/") == {
        "kind": "predictions", "name": "mine", "card": {"description": "Mine."},
        "evaluation_set": "round-1", "upload": "u1",
    }  # fmt: skip
    assert accepting.asked[-1].url.path == f"/api/v1/models/{ID}/publish/"
    out, err = capsys.readouterr()
    assert f"Handed in: {SERVER}/m/{ID}/" in err
    assert "answers.jsonl: 0.0 MB" in err
    assert "Dynascore 41.25 (39.50 to 43.00), rank 2=" in out
    assert "control  accuracy  0.5    0.4 to 0.6     90" in out
    assert "Note: round1_acc: round 1 is not over." in out
    assert out.endswith("Published.\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--hub", "org/name@" + "a" * 40], {"source": "org/name", "revision": "a" * 40}),
        (["--image", "r/n@sha256:12"], {"source": "r/n@sha256:12", "adapter": "jsonl"}),
        (
            ["--endpoint", "https://x.test", "--secret-env", "OF_X", "--name", "x"],
            {"source": "https://x.test", "adapter": "jsonl", "secret": "abc"},
        ),
    ],
)
def test_what_is_elsewhere_is_named(accepting, capsys, monkeypatch, arguments, told):
    monkeypatch.setenv("OF_X", "abc")
    assert main(["submit", *arguments, "--task", "nli", "--no-wait"]) == 0
    body = accepting.body("/tasks/nli/models/")
    assert {name: body.get(name) for name in told} == told
    out, err = capsys.readouterr()
    assert out == f"Follow it: dynabench status {ID}\n"
    assert "abc" not in out + err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--image", "my-image"], 2, "docker save -o model.tar my-image"),
        (["--predictions", "answers.jsonl"], 2, "--set"),
        (["--endpoint", "https://x.test"], 2, "--name"),
        (["--endpoint", "https://x.test", "--name", "x", "--secret-env", "NO_X"], 2, "NO_X"),
        (["--hub", "a/b@c", "--publish", "--no-wait"], 2, "leave --no-wait out"),
        (["no-such-folder"], 1, "There is no no-such-folder."),
    ],
)
def test_what_is_missing_is_asked_for(accepting, failing, arguments, code, said):
    found, text = failing("submit", *arguments, "--task", "nli")
    assert found == code
    assert said in text
    assert not [request for request in accepting.asked if request.method == "POST"]


def test_a_model_that_failed_shows_the_end_of_its_log(accepting, failing):
    error = {
        "outcome": "timeout", "sentence": "It had not ended.", "limit": "60 s", "measured": "61 s",
        "log": "loading\nanswering\n",
    }  # fmt: skip
    failed = {**RESULTS, "phase": "failed", "error": error}
    accepting.answers[f"GET /models/{ID}/results/"] = failed
    code, said = failing("submit", "--hub", "a/b@c", "--task", "nli")
    assert code == 1
    assert said.startswith("It had not ended. (limit 60 s, measured 61 s)")
    assert said.endswith("loading\nanswering")


def test_who_stops_waiting_is_told_how_to_go_on(accepting, failing):
    accepting.answers[f"GET /models/{ID}/results/"] = KeyboardInterrupt()
    code, said = failing("submit", "--hub", "a/b@c", "--task", "nli")
    assert code == 130
    assert f"dynabench results {ID} --wait" in said


def test_status_of_one_and_of_all(server, capsys):
    model = {"id": ID, "task": "nli", "name": "mine", "sentence": "It was not accepted."}
    model |= {"error": "model.safetensors: these weights are missing.", "log": ""}
    server.answers |= {
        f"GET /models/{ID}/": model,
        f"GET /models/{ID}/runs/": {"results": [RUN], "next": None},
        "GET /me/models/": {"results": [model], "next": None},
    }
    assert main(["status", ID]) == 0
    first, second, _, last = capsys.readouterr().out.splitlines()
    assert first == "mine (nli): It was not accepted."
    assert second == "model.safetensors: these weights are missing."
    assert last.split("  ") == [ID, "control v2, plain", "failed", "It needed too much."]
    assert main(["status"]) == 0
    assert f"{ID}  nli   mine  It was not accepted." in capsys.readouterr().out
    server.answers["GET /me/models/"] = {"results": [], "next": None}
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "You have not handed in a model yet.\n"


def test_logs_of_one_evaluation_and_of_all(server, capsys):
    server.answers |= {
        f"GET /models/{ID}/": {"log": ""},
        f"GET /models/{ID}/runs/": {"results": [RUN], "next": None},
        f"GET /models/{ID}/runs/{ID}/": {"log": "loading\n"},
    }
    assert main(["logs", ID]) == 0
    assert capsys.readouterr().out == f"== control v2, plain, run {ID} ==\nloading\n"
    assert main(["logs", ID, "--run", ID]) == 0
    assert capsys.readouterr().out == "loading\n"
    server.answers[f"GET /models/{ID}/runs/"] = {"results": [], "next": None}
    assert main(["logs", ID]) == 0
    assert capsys.readouterr().out == "Nothing was written to the log.\n"


def test_results_as_json_are_those_of_the_server(accepting, capsys):
    assert main(["results", ID, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == RESULTS


def test_results_before_there_are_any(accepting, capsys):
    early = {**RESULTS, "dynascore": None, "scores": {}, "notes": [], "is_over": False}
    accepting.answers[f"GET /models/{ID}/results/"] = {**early, "sentence": "In the queue."}
    assert main(["results", ID]) == 0
    assert capsys.readouterr().out == "mine (nli): In the queue.\n"


# leaderboard, data


def test_a_leaderboard_by_ones_own_weights(server, capsys):
    cell = {"value": 61.5, "low": None, "high": None}
    server.answers["GET /tasks/nli/leaderboard/"] = {
        "metrics": [{"name": "accuracy"}, {"name": "memory"}],
        "rows": [
            {"rank": "1", "model": "a", "dynascore": cell, "metrics": {"accuracy": cell}},
            {"rank": "", "model": "b", "dynascore": {**cell, "value": None}, "metrics": {}},
        ],
    }
    weights = ["--weights", "accuracy=4,memory=0.5", "--datasets", "round-1=5", "--mine"]
    assert main(["leaderboard", "nli", *weights]) == 0
    asked = dict(server.asked[-1].url.params)
    assert asked == {"w_accuracy": "4.0", "w_memory": "0.5", "d_round-1": "5.0", "mine": "1"}
    first, second = capsys.readouterr().out.splitlines()[1:]
    assert first.split() == ["1", "a", "61.50", "61.50", "-"]
    assert second.split() == ["not", "run", "b", "-", "-", "-"]


def test_data_are_listed_and_downloaded(server, capsys):
    digest = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"  # of "hi\n"
    files = [{"name": "train.jsonl", "size": 3, "sha256": digest}]
    server.answers |= {
        "GET /tasks/nli/datasets/": [{"round": 1, "version": 2, "files": files}],
        "GET /tasks/nli/evaluation-sets/": [{"name": "control"}],
        "GET /tasks/nli/rounds/1/datasets/2/files/train.jsonl": httpx.Response(200, text="hi\n"),
        "GET /tasks/nli/evaluation-sets/control/inputs/": httpx.Response(200, text="{}\n"),
    }
    assert main(["data", "nli"]) == 0
    out = capsys.readouterr().out
    assert "1      2        train.jsonl" in out
    assert "Evaluation sets: control" in out
    assert main(["data", "nli", "1", "--to", "here"]) == 0
    assert capsys.readouterr().out == "It is in here/nli-round1-v2.\n"
    assert Path("here/nli-round1-v2/train.jsonl").read_text() == "hi\n"
    assert main(["data", "nli", "--inputs", "control"]) == 0
    assert Path("nli-control.inputs.jsonl").read_text() == "{}\n"
    assert main(["data", "nli", "9"]) == 1


# Pages


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
