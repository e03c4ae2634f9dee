"""`manage.py evaluate`: one evaluation from the shell."""

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from evaluation import cli as by_hand
from evaluation.contract import Ending, Outcome, SetRow, Usage
from evaluation.isolation.inference.precheck import NO_ENGINE_ADVICE
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.process import ProcessRunner
from evaluation.models import EvaluationRun
from tests.support.chat_server import chat_server
from tests.support.evaluations import LABELS, ScriptedRunner, set_version
from tests.support.factories import TaskFactory
from tests.support.serving_models import tiny_model, tiny_seq2seq


@pytest.fixture(autouse=True)
def task(settings, tmp_path, db):
    settings.MEDIA_ROOT = tmp_path / "media"
    task = TaskFactory(code="nli")
    set_version(task)
    return task


@pytest.fixture
def no_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")


@pytest.fixture
def runner(monkeypatch):
    """A scripted model; right unless something was changed."""
    scripted = ScriptedRunner(lambda inputs: LABELS[int(inputs["premise"].split()[1]) % 3])
    monkeypatch.setattr(by_hand, "find_model", lambda task, model, runner: (None, scripted))
    return scripted


def evaluate(*arguments, dataset="dev", model="a-model", **options):
    """What it prints; raises CommandError with the exit status."""
    out = StringIO()
    try:
        call_command(
            "evaluate", *arguments, "--task", "nli", "--dataset", dataset, model,
            stdout=out, stderr=StringIO(), **options,
        )  # fmt: skip
    except CommandError as error:
        error.printed = out.getvalue()
        raise
    return out.getvalue()


def refusal(*arguments, **options):
    with pytest.raises(CommandError) as refused:
        evaluate(*arguments, **options)
    assert refused.value.returncode == 2
    assert refused.value.printed == ""
    return str(refused.value)


def test_one_json_object_with_all_that_was_measured(monkeypatch, runner):
    monkeypatch.setattr(by_hand, "compute_cost_cents", lambda seconds: seconds)
    report = json.loads(evaluate("--json"))
    assert (report["outcome"], report["runner"], report["examples"]) == ("ok", "scripted", 6)
    assert (report["task"], report["dataset"], report["model"]) == ("nli", "nli/dev v1", "a-model")
    assert report["metrics"]["accuracy"].keys() == {"value", "low", "high", "n"}
    assert report["metrics"]["accuracy"]["value"] == 1
    assert report["slices"]["tag=odd"]["accuracy"]["n"] == 3
    assert report["throughput"]["examples_per_second"] == 3.0
    assert report["memory"] == {"peak_bytes": None, "mean_bytes": None}
    assert (report["cpu_seconds"], report["cost_cents"]) == (1.5, 1.5)
    assert report["perturbations"].keys() == {"robustness", "fairness"}
    robustness = report["perturbations"]["robustness"]
    assert robustness["metrics"]["accuracy_before"]["value"] == 1
    assert robustness["kinds"]["upper_case"]["consistency"]["n"] > 0
    assert not EvaluationRun.objects.exists()


def test_a_table_for_people(runner):
    printed = evaluate("--suites", "plain")
    assert "a-model on nli/dev v1 (6 examples)" in printed
    assert "outcome: ok, runner scripted" in printed
    assert "accuracy                      1.0000 (0.6097 to 1.0000)  n 6" in printed
    assert "tag=odd" in printed
    assert "robustness" not in printed


def test_the_first_examples_only(runner):
    assert json.loads(evaluate("--json", "--limit", "2", "--suites", "plain"))["examples"] == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_a_model_that_fails_ends_with_one_and_is_reported(runner, as_json):
    runner.ending = Ending(Outcome.OOM, Usage(1.0), "Too big.", "8 GiB", "more", "its log")
    with pytest.raises(CommandError, match=r"^oom: Too big\.$") as failed:
        evaluate(*(["--json"] if as_json else []))
    assert failed.value.returncode == 1
    printed = failed.value.printed
    if as_json:
        report = json.loads(printed)
        assert (report["outcome"], report["sentence"]) == ("oom", "Too big.")
        assert (report["metrics"], report["perturbations"]) == ({}, {})
        assert (report["limit"], report["measured"], report["log"]) == ("8 GiB", "more", "its log")
    else:
        assert "limit: 8 GiB; measured: more" in printed
        assert "\nits log" in printed


def test_a_perturbed_suite_that_fails_is_the_outcome(runner):
    def answer(inputs):
        if "Person" not in inputs["premise"]:  # a variant in other letters
            return "no label"
        return "neutral"

    runner.answer = answer
    report = runner.run

    def run(*args, **options):
        from evaluation.contract import InvalidOutput

        try:
            return report(*args, **options)
        except InvalidOutput as error:
            return Ending(Outcome.INVALID_OUTPUT, Usage(1.0), str(error))

    runner.run = run
    with pytest.raises(CommandError, match=r"^invalid_output: Line") as failed:
        evaluate("--json", "--suites", "robustness")
    printed = json.loads(failed.value.printed)
    assert printed["outcome"] == "ok"
    assert printed["perturbations"]["robustness"]["outcome"] == "invalid_output"


def test_a_file_is_a_set_too_and_its_wrong_lines_are_named(runner, tmp_path):
    good = {"premise": "Person 1 ran.", "hypothesis": "Ran.", "label": "neutral"}
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps(good))
    report = json.loads(evaluate("--json", "--suites", "plain", dataset=str(file)))
    assert (report["dataset"], report["metrics"]["accuracy"]["value"]) == ("mine.jsonl", 1)
    file.write_text("\n".join([json.dumps(good), json.dumps({**good, "label": "maybe"}), "{"]))
    told = refusal(dataset=str(file)).splitlines()
    assert [line.split(": ")[0] for line in told] == ["mine.jsonl:2", "mine.jsonl:3"]
    file.write_text("")
    assert refusal(dataset=str(file)).startswith("mine.jsonl ")
    other = tmp_path / "mine.txt"
    other.write_text("x")
    assert "name the file .jsonl" in refusal(dataset=str(other))


def test_errors_name_what_to_mend(runner):
    assert re.search(r"'dex'.* Sets: dev\.", refusal(dataset="dex"))
    assert re.search(r"'speed'.* plain,robustness,fairness", refusal("--suites", "speed"))
    assert refusal("--limit", "0").startswith("--limit 0: ")
    with pytest.raises(CommandError, match=r"'nil'\. Tasks: nli"):
        call_command("evaluate", "--task", "nil", "--dataset", "dev", "a-model")


def test_errors_about_the_model_name_what_to_mend(no_engine, tmp_path, monkeypatch):
    assert "config.json is missing" in refusal(model=str(tmp_path))
    assert "an-image" in refusal(model="an-image")
    assert refusal("--runner", "docker", model=str(tmp_path)) == NO_ENGINE_ADVICE


def test_images_are_looked_at_before_they_are_run(monkeypatch):
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: "one")
    monkeypatch.setattr(images, "inspect_image", lambda name: "facts")
    monkeypatch.setattr(
        images, "find_image_problems", lambda facts: ["No ENTRYPOINT.", "A VOLUME."]
    )
    assert refusal(model="an-image") == "No ENTRYPOINT.\nA VOLUME."


def test_without_an_engine_a_folder_is_run_in_a_process(no_engine, tmp_path, monkeypatch):
    """What the process measures: tests/integration/test_process_runner.py."""
    ending = Ending(Outcome.OK, Usage(1.0, cpu_seconds=0.5, peak_bytes=2**21, mean_bytes=2**20))
    scripted = ScriptedRunner(ending=ending)
    monkeypatch.setattr(ProcessRunner, "run", scripted.run)
    folder = tiny_model(tmp_path / "model", "pair-classification")
    report = json.loads(evaluate("--json", "--suites", "plain", model=str(folder)))
    assert (report["outcome"], report["runner"]) == ("ok", ProcessRunner.name)
    assert report["memory"] == {"peak_bytes": 2**21, "mean_bytes": 2**20}
    assert report["cpu_seconds"] == 0.5
    assert len(scripted.sent) == 1


def test_a_suite_in_other_words(task, runner, tmp_path, monkeypatch):
    folder = str(tiny_seq2seq(tmp_path / "t5"))
    texts = {"premise": "the shop is open", "hypothesis": "it is closed"}
    set_version(task, "plain", rows=[SetRow(str(n), texts, ("neutral",)) for n in range(6)])
    runner.answer = lambda inputs: "neutral"
    monkeypatch.setattr("evaluation.scoring.paraphrase.MAX_TOKENS", 8)
    options = ["--json", "--paraphrase", folder, "--suites"]
    report = json.loads(evaluate(*options, "robustness", dataset="plain"))
    assert list(report["perturbations"]) == ["robustness", "paraphrase"]
    part = report["perturbations"]["paraphrase"]
    assert part["outcome"] == "ok"
    assert part["kinds"].keys() == {"paraphrase"}
    assert part["metrics"]["accuracy_before"]["n"] == 6
    again = json.loads(evaluate(*options, "plain", dataset="plain"))
    assert again["perturbations"]["paraphrase"]["metrics"] == part["metrics"]
    assert (again["metrics"], again["slices"]) == (report["metrics"], report["slices"])


def test_there_must_be_a_model_that_paraphrases(runner, tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        assert refusal("--paraphrase", str(folder)).startswith("--paraphrase")


@pytest.mark.parametrize("key", ["the-right-one", "another-one"])
def test_a_chat_model_behind_a_key_is_asked_with_it(settings, monkeypatch, key):
    settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setenv("MY_KEY", key)
    with chat_server({"m": lambda messages: "neutral"}) as server:
        server.key = "the-right-one"
        options = {"chat": server.url, "model": "m", "secret_env": "MY_KEY", "suites": "plain"}
        if key == server.key:
            assert json.loads(evaluate("--json", **options))["outcome"] == "ok"
            return
        with pytest.raises(CommandError) as refused:
            evaluate(**options)
    assert "is no API key of this server" in str(refused.value)
    assert key not in str(refused.value)


def test_a_chat_model_is_asked_at_its_server(settings):
    settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]
    with chat_server({"m": lambda messages: "neutral"}) as server:
        options = {"chat": server.url, "instructions": "Be brief.", "suites": "plain"}
        report = json.loads(evaluate("--json", model="m", **options))
    assert (report["outcome"], report["runner"]) == ("ok", "endpoint")
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(1 / 3)
    assert all(body["messages"][0]["content"].startswith("Be brief.") for body in server.seen)
    assert "--chat" in refusal(model="m", chat="ftp://127.0.0.1/v1")
