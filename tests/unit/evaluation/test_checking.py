"""The check of a model where there is no database: the program, its report, what it needs."""

import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.contract import Ending, Outcome, Runnable
from evaluation.isolation.inference import precheck
from evaluation.isolation.inference.precheck import (
    ENDED_EARLY_ADVICE,
    NO_ENGINE_ADVICE,
    SubmissionRefused,
    answer_examples,
)
from evaluation.isolation.sandbox.advice import LOG_ADVICE
from evaluation.isolation.sandbox.limits import Limits
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER
from tests.support.serving_models import tiny_model

NLI = OFFICIAL_FOLDER / "nli" / "task.yaml"
LIMITS = ("--memory-gib", "2", "--cpus", "1")


@pytest.fixture
def config():
    return str(NLI)


@pytest.fixture
def inputs(tmp_path):
    """Six examples, of which five are asked."""
    rows = [{"id": f"u{n}", "inputs": {"premise": f"P{n}.", "hypothesis": "So."}} for n in range(6)]
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("tiny"), "pair-classification")


def check(capsys, *arguments):
    """Exit status and report."""
    code = precheck.main([str(argument) for argument in arguments])
    return code, json.loads(capsys.readouterr().out)


def answers(tmp_path, *lines):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_a_good_folder_answers_five(capsys, config, inputs, folder):
    code, report = check(
        capsys, folder, "--config", config, "--inputs", inputs, "--runner", "process", *LIMITS
    )
    assert (code, report["ok"], report["outcome"], report["message"]) == (0, True, "ok", "")
    assert report["runner"] == "process"
    assert len(report["answers"]) == 5
    assert {"answer", "prob"} == set(report["answers"][0])
    assert report["seconds"] > 0
    assert {"examples_per_second", "peak_bytes", "log", "warnings"} <= set(report)
    assert "measurements" not in report


def test_a_folder_without_a_model_is_refused_as_on_arrival(capsys, config, inputs, tmp_path):
    code, report = check(
        capsys, tmp_path, "--config", config, "--inputs", inputs, "--runner", "process"
    )
    assert (code, report["ok"], report["outcome"]) == (1, False, "rejected")
    assert report["message"].startswith("config.json is missing")


def test_a_folder_is_looked_through_and_asked_nothing(capsys, config, tmp_path):
    code, report = check(capsys, tmp_path, "--config", config, "--look")
    assert (code, report["outcome"]) == (1, "rejected")
    assert report["message"].startswith("config.json is missing")
    folder = tiny_model(tmp_path / "tiny", "pair-classification")
    assert check(capsys, folder, "--config", config, "--look")[0] == 0


def test_an_image_needs_an_engine(capsys, config, inputs, monkeypatch):
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: None)
    told = ("an-image", "--config", config, "--inputs", inputs)
    code, report = check(capsys, *told)
    assert (code, report["outcome"]) == (1, "infrastructure")
    assert "an-image" in report["message"]
    assert check(capsys, *told, "--runner", "docker")[1]["message"] == NO_ENGINE_ADVICE
    report = check(capsys, *told, "--runner", "process")[1]
    assert report["outcome"] == "rejected"


def test_predictions_are_checked_line_by_line(capsys, config, inputs, tmp_path):
    good = [json.dumps({"id": f"u{n}", "output": {"label": "neutral"}}) for n in range(6)]
    told = ("--config", config, "--uids", inputs, "--predictions")
    assert check(capsys, *told, answers(tmp_path, *good))[0] == 0
    bad = answers(tmp_path, *good[:4], good[4].replace("neutral", "maybe"))
    code, report = check(capsys, *told, bad)
    assert (code, report["outcome"]) == (1, "invalid_output")
    assert 'Line 5: "maybe"' in report["message"]
    assert "u4, u5." in report["message"]


def test_a_mistake_that_many_lines_share_is_written_out_once(capsys, config, inputs, tmp_path):
    path = tmp_path / "answers.jsonl"
    told = ("--config", config, "--uids", inputs, "--predictions", path)
    flat = '{"id": "ID", "label": "neutral"}'
    wrong = {1: flat, 2: "neutral", 3: flat, 4: flat}
    path.write_text("\n".join(wrong.values()))
    code, report = check(capsys, *told)
    said = report["message"].splitlines()
    assert code == 1
    assert [line.split(":")[0] for line in said if line.startswith("Line")] == ["Line 1", "Line 2"]
    assert [line for line in said if "3, 4" in line]
    assert not [line for line in said if "20" in line]
    path.write_text("\n".join([flat] * 30))  # it stops, and says so
    said = check(capsys, *told)[1]["message"].splitlines()
    assert len(said) == 4
    assert "19, 20." in said[2]
    assert "20" in said[3]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\n\n \n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("writer", ["us", "lm_eval"])
def test_predictions_are_read_as_every_other_file(
    capsys, config, inputs, tmp_path, encoding, line_end, writer
):
    """The same answers have the same digest; uids are in a file of that kind, too."""
    path, uids, digests = tmp_path / "answers.jsonl", tmp_path / "uids.jsonl", set()
    uids.write_bytes(Path(inputs).read_text().replace("\n", line_end).encode(encoding))
    rows = [{"id": f"u{n}", "output": {"label": "neutral"}} for n in range(6)]
    if writer == "lm_eval":
        rows = [{"doc": {"uid": f"u{n}"}, "filtered_resps": ["neutral"]} for n in range(6)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for lines in (text, line_end + text.replace("\n", line_end) + line_end):
        path.write_bytes(lines.encode(encoding))
        code, report = check(capsys, "--config", config, "--uids", uids, "--predictions", path)
        assert (code, report["message"]) == (0, "")
        kept = tmp_path / "kept"
        precheck.store_predictions(
            load_config(Path(config).read_text()), [f"u{n}" for n in range(6)], path, kept
        )
        lines = gzip.decompress(kept.read_bytes()).split(b"\n")
        digests.add(hashlib.sha256(b"".join(filter(bytes.strip, lines))).hexdigest())
    assert len(digests) == 1


def test_damaged_utf_16_is_named(capsys, config, inputs, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes('{"id": "u0"}'.encode("utf-16") + b"\x00")
    code, report = check(capsys, "--config", config, "--uids", inputs, "--predictions", path)
    assert (code, report["outcome"]) == (1, "invalid_output")
    assert "UTF-16" in report["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model"], "give MODEL with --inputs"),
        (["--predictions", __file__], "give MODEL with --inputs"),
        (["model", "--inputs", "/nowhere"], "No such file"),
        (["model", "--inputs", str(NLI)], "JSONDecodeError"),
        (["model", "--inputs", __file__, "--config", __file__], "ConfigError"),
    ],
)
def test_what_cannot_be_asked_is_told_apart(capsys, config, arguments, words):
    with pytest.raises(SystemExit) as ended:
        precheck.main(["--config", config, *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("hidden", [(), ("docker",)])
def test_it_needs_no_django_and_for_folders_no_docker(config, inputs, tmp_path, hidden):
    """In a process of its own, which says what it imported; `hidden` cannot be imported there."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "from evaluation.isolation.inference import precheck\n"
        f"told = [{str(tmp_path)!r}, '--config', {config!r}, '--inputs', {inputs!r}]\n"
        "code = precheck.main(told)\n"
        "loaded = {name.partition('.')[0] for name, module in sys.modules.items() if module}\n"
        "print(code, *loaded & {'django', 'rest_framework', 'docker', 'numpy', 'torch'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    report, told = done.stdout.splitlines()
    assert "config.json is missing" in report
    assert told.split() == ["1", *(["docker"] * (not hidden))]


class Ended:
    """A runner whose model ends so, without an answer."""

    name = "stub"

    def __init__(self, ending: Ending) -> None:
        self.ending = ending

    def run(self, *_: object, **__: object) -> Ending:
        return self.ending


@pytest.mark.parametrize(
    ("ending", "named"),
    [
        (
            Ending(Outcome.MODEL_ERROR, sentence=f"Ended. {LOG_ADVICE}", log="Permission denied"),
            "65534",
        ),
        (
            Ending(Outcome.MODEL_ERROR, sentence=f"Ended. {LOG_ADVICE}", log="ValueError"),
            LOG_ADVICE,
        ),
        (Ending(Outcome.OK), ENDED_EARLY_ADVICE),
        (Ending(Outcome.OK, log="getaddrinfo failed"), "no network"),
    ],
)
def test_a_model_that_ends_early_is_refused_with_a_cure(ending, named, tmp_path):
    task, rows = load_config(NLI.read_text()), [{"premise": "a", "hypothesis": "b"}] * 5
    with pytest.raises(SubmissionRefused) as refused:
        answer_examples(task, Runnable(), Ended(ending), rows, Limits(), tmp_path, lambda: None)
    assert named in str(refused.value)
    assert "  " not in str(refused.value)
