"""`dynabench init` and `test`: an example that works, and the check of a model at home."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynabench.client.commands import main
from dynabench.client.commands import test as test_command
from evaluation.isolation.inference.exchange import build_collected_answers
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig
from tests.unit.client.commands.conftest import ROOT

OFFICIAL = ROOT / "tasks" / "official"
NLI = {
    "kind": "pair-classification",
    "type": "multiclass",
    "fields": ["premise", "hypothesis"],
    "output": "label",
    "labels": ["entailment", "neutral", "contradiction"],
}
PAIRS = [{"premise": f"Ann has {n} cats.", "hypothesis": "Ann has a cat."} for n in range(5)]


# init


def of_task(code: str) -> tuple[TaskConfig, dict[str, Any]]:
    """An official task, and what the server tells of it before a model is made."""
    from evaluation.task_shape import build_trainable_shape

    config = load_config((OFFICIAL / code / "task.yaml").read_text())
    shape = build_trainable_shape(config)
    kind = config.get_component(shape.answer).type
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
        answers = build_collected_answers(config, [f"example-{n}" for n in range(1, 6)])
        for line in written.splitlines():
            answers.take(line)
        assert answers.count_missing() == 0
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
    code, said = failing("init", "nli", "mine")
    assert code
    assert said.startswith("mine ")
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


def test_a_name_that_is_no_task_becomes_a_benchmark(server, capsys):
    server.answers["GET /tasks/"] = [{"code": "nli"}, {"code": "sentiment"}]
    assert main(["init", "my-benchmark"]) == 0
    files = {path.name for path in Path("my-benchmark").iterdir()}
    assert {"benchmark.yaml", "task.yaml", "texts.jsonl", "members.csv", ".gitignore"} <= files
    assert "task: my-benchmark\n" in Path("my-benchmark/benchmark.yaml").read_text()
    said = capsys.readouterr()
    assert "dynabench apply my-benchmark" in said.out
    assert "my-benchmark" in said.err


def test_a_misspelt_task_becomes_no_benchmark(server, failing):
    server.answers["GET /tasks/"] = [{"code": "nli"}, {"code": "sentiment"}]
    code, said = failing("init", "sentimant")
    assert code == 1
    assert "sentiment" in said
    assert not Path("sentimant").exists()
    assert main(["init", "sentimant", "--benchmark"]) == 0


def test_a_benchmark_needs_no_server(server, monkeypatch, capsys):
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    server.otherwise = None
    monkeypatch.setattr(type(server), "__call__", lambda self, request: refuse(request))
    assert main(["init", "mine", "--benchmark"]) == 0
    assert main(["init", "mine", "other/Deep_Folder", "--benchmark"]) == 0
    assert "task: deep-folder\n" in Path("other/Deep_Folder/benchmark.yaml").read_text()
    # Without a server that was chosen, nobody could know the name as a task.
    monkeypatch.delenv("DYNABENCH_URL")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path.cwd()))
    assert main(["init", "my-benchmark"]) == 0
    assert Path("my-benchmark/task.yaml").exists()
    # A chosen server that is away is an error: it may have the task.
    assert main(["init", "nli", "--server", "http://away.test"]) == 3
    assert not Path("nli").exists()


def test_a_benchmark_writes_nothing_over(server, failing):
    Path("mine").mkdir()
    Path("mine", "notes.txt").write_text("My own.")
    code, said = failing("init", "mine", "--benchmark")
    assert (code, said.startswith("mine ")) == (1, True)
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]


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
    assert (root / "evaluation/isolation/inference/precheck.py").exists()
    out, err = capsys.readouterr()
    assert "2 examples" in out
    assert "1  neutral  (0.75)" in out
    assert "Runner process: 4.2 s, 0.50 GiB of memory." in out
    assert "training_args.bin" in err


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
    assert re.search(r"no-such-folder.* docker.*pip install 'dynabench-client\[test\]'", said)
    assert server.asked == []


def test_a_folder_without_a_configuration_is_refused(server, failing, checked):
    Path("model", "config.json").unlink()
    code, said = failing("test", "model", "--task", "nli")
    assert code == 1
    assert "config.json is missing" in said
    Path("model", "inner").mkdir()
    Path("model", "inner", "config.json").write_text("{}")
    assert failing("test", "model", "--task", "nli")[1].endswith("Use model/inner.")


def test_a_folder_that_makes_an_image_is_built_first(server, failing, checked):
    Path("model", "Dockerfile").write_text("FROM scratch\n")
    code, said = failing("test", "model", "--task", "nli")
    assert code == 2
    assert "docker build -t name:1 model" in said


@pytest.mark.parametrize("command", [["submit"], ["test", "--runner", "process"]])
def test_what_the_check_refuses_is_not_handed_in_either(server, failing, command):
    """The real check, of a folder without a tokenizer."""
    text = (ROOT / "tasks" / "official" / "nli" / "task.yaml").read_text()
    limits = {"memory_gib": 4, "cpus": 2, "seconds": 300}
    told = {"inputs": PAIRS, "config_text": text, **limits}
    server.answers["GET /tasks/nli/check-inputs/"] = told
    Path("model").mkdir()
    for name in ("config.json", "model.safetensors", "training_args.bin"):
        Path("model", name).write_text("{}")
    code, said = failing(*command, "model", "--task", "nli")
    assert code == 1
    assert "tokenizer" in said
    assert {request.method for request in server.asked} == {"GET"}


def test_predictions_are_compared_with_their_set(server, failing, capsys):
    """By the real check; both answers of the server are those of --json too."""
    text = (ROOT / "tasks" / "official" / "nli" / "task.yaml").read_text()
    server.answers["GET /tasks/nli/check-inputs/"] = {"inputs": PAIRS, "config_text": text}
    inputs = httpx.Response(200, content=b'{"id": "a", "inputs": {}}\n')
    server.answers["GET /tasks/nli/evaluation-sets/round-1/inputs/"] = inputs
    wanted = ["test", "--predictions", "mine.jsonl", "--task", "nli"]
    assert failing(*wanted)[0] == 2
    assert failing(*wanted, "--set", "round-1")[0] == 2
    assert not server.asked
    Path("mine.jsonl").write_text('\ufeff{"id": "a", "output": {"label": "neutral"}}\r\n\n')
    assert main([*wanted, "--set", "round-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    Path("mine.jsonl").write_text('{"id": "a", "label": "neutral"}\n')
    assert main([*wanted, "--set", "round-1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["outcome"]) == (False, "invalid_output")
    assert '"output": {"label"' in told["error"]["message"]
