"""The runtime image with our harness, and the shim in images of others, in the real sandbox."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import docker
import pytest

from evaluation.contract import Ending, Outcome, Runnable, WritingSettings
from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.isolation.sandbox.limits import Limits
from tests.support.serving_models import KINDS, says, tiny_model

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[2]
TEXTS = ("a short one", "one that is a little longer than the others are", "no", "yes, perhaps")
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = ROUTES[sys.argv[1]].get(self.path, lambda _: None)(asked)
        body = json.dumps(answer).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

def judged(example):
    return {"label": "yes" if len(example["text"]) > 12 else "no", "signature": "s"}

def dynalab(example):
    return dict(judged(example), id=example["uid"], prob={"yes": 3.0, "no": 1.0})

ROUTES = {
    "one": {"/invocations": dynalab},
    "batch": {"/model/batch_evaluation": lambda a: [judged(e) for e in a["dataset_samples"]]},
    "single": {"/model/single_evaluation": judged},
    "wrong": {"/invocations": lambda example: {"id": "another", "label": "yes"}},
    "odd": {"/invocations": lambda example: {"id": example["uid"], "labels": ["yes"]}},
}
print("listening", flush=True)
HTTPServer(("0.0.0.0", int(sys.argv[2])), Model).serve_forever()
"""


@pytest.fixture(scope="module", autouse=True)
def images() -> None:
    """Both images; a moment when they are there."""
    subprocess.run([ROOT / "scripts" / "runtime_image.sh"], check=True)


def test_an_image_of_other_pins_is_told_from_ours(tmp_path: Path) -> None:
    def status(root: Path) -> int:
        script = root / "scripts" / "runtime_image.sh"
        return subprocess.run([script, "--is-current"], capture_output=True).returncode

    assert status(ROOT) == 0
    script = (ROOT / "scripts" / "runtime_image.sh").read_text()
    named = re.search(r"^SOURCES=\(.*?\)$", script, re.MULTILINE | re.DOTALL)
    assert named
    copy = f'{named[0]}; cp -r --parents scripts "${{SOURCES[@]}}" {tmp_path}'
    subprocess.run(["bash", "-c", copy], cwd=ROOT, check=True)
    pins = (ROOT / "requirements-runtime.txt").read_text()
    (tmp_path / "requirements-runtime.txt").write_text(pins)
    assert status(tmp_path) == 0
    (tmp_path / "requirements-runtime.txt").write_text(f"{pins}# more\n")
    assert status(tmp_path) == 3


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Any]:
    """Makes an image of another: a server of theirs, started with these arguments."""
    made = []
    with closing(docker.from_env()) as client:

        def build(kind: str, port: int, expose: int | None = None) -> str:
            context = tmp_path / kind
            context.mkdir()
            (context / "server.py").write_text(SERVER)
            (context / "Dockerfile").write_text(
                "FROM dynabench-base\nCOPY server.py /server.py\n"
                + (f"EXPOSE {expose}/tcp\n" if expose else "")
                + f'ENTRYPOINT ["python3"]\nCMD ["/server.py", "{kind}", "{port}"]\n'
            )
            image, _ = client.images.build(path=str(context), rm=True)
            made.append(image.id)
            return str(image.id)

        yield build
        for image in made:
            client.images.remove(image, force=True)


def examples(folder: Path, fields: list[str], texts: tuple[str, ...] = TEXTS) -> Path:
    file = folder / "examples.jsonl"
    rows = [{"id": f"x{n}", "inputs": dict.fromkeys(fields, text)} for n, text in enumerate(texts)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(model: Runnable, inputs: Path, **limits: Any) -> tuple[Ending, dict[str, Any]]:
    lines: list[bytes] = []
    runner = DockerRunner(f"test-{uuid4().hex}")
    ending = runner.run(model, inputs, Limits(**limits), take=lines.append, beat=lambda: None)
    answers = [json.loads(line) for line in lines]
    assert len({answer["id"] for answer in answers}) == len(answers)
    return ending, {answer["id"]: answer for answer in answers}


@pytest.mark.parametrize("kind", ["pair-classification", "extractive-qa"])
def test_a_folder_is_answered(kind: str, tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "model", kind)
    assert folder.joinpath("model.safetensors").stat().st_mode & 0o077 == 0  # a copy is made
    fields, labels = KINDS[kind]["fields"], KINDS[kind]["labels"]
    model = Runnable(
        folder=folder,
        fields=tuple(fields),
        output=KINDS[kind]["output"],
        labels=labels and tuple(labels),
    )
    ending, answers = run(model, examples(tmp_path, fields))
    assert ending.outcome == Outcome.OK, ending
    assert ending.log == ""
    assert ending.usage.peak_bytes > 0
    assert answers.keys() == {f"x{n}" for n in range(len(TEXTS))}
    for n, text in enumerate(TEXTS):
        output = answers[f"x{n}"]["output"]
        if labels:
            assert output["label"] in labels
            assert sum(answers[f"x{n}"]["prob"].values()) == pytest.approx(1)
        else:
            assert text[output["start"] : output["end"]] == output["answer"]


def test_a_language_model_writes(tmp_path: Path) -> None:
    folder = says(tmp_path / "model", "yes")
    file = tmp_path / "examples.jsonl"
    messages = [{"role": "user", "content": "A heron?"}]
    file.write_text(json.dumps({"id": "x0", "messages": messages}) + "\n")
    ending, answers = run(
        Runnable(folder=folder, fields=("text",), writing_settings=WritingSettings()), file
    )
    assert ending.outcome == Outcome.OK, ending
    assert (answers["x0"]["text"], answers["x0"]["finish"]) == ("yes", "stop")


def test_a_folder_of_pickles_is_refused_in_words(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"\x80")
    model = Runnable(folder=folder, fields=("text",), output="label", labels=("no", "yes"))
    ending, answers = run(model, examples(tmp_path, ["text"]))
    assert ending.outcome == Outcome.MODEL_ERROR
    assert "only pickled weights (pytorch_model.bin)" in ending.sentence
    assert not answers


MANY = tuple("text " + "n" * n for n in range(70))


@pytest.mark.parametrize(
    ("adapter", "kind", "port", "expose"),
    [
        ("dynalab", "one", 8080, None),
        ("dynalab", "one", 9000, 9000),
        ("dynabench2", "batch", 80, None),
        ("dynabench2", "single", 80, 80),
    ],
)
def test_an_image_built_for_dynabench_is_asked(
    adapter: str, kind: str, port: int, expose: int | None, built: Any, tmp_path: Path
) -> None:
    model = Runnable(
        image=built(kind, port, expose),
        adapter=adapter,
        fields=("text",),
        output="label",
        labels=("no", "yes"),
    )
    ending, answers = run(model, examples(tmp_path, ["text"], MANY))
    assert ending.outcome == Outcome.OK, ending
    assert "listening" in ending.log
    said = [answers[f"x{n}"]["output"] for n in range(len(MANY))]
    assert said == [{"label": "yes" if len(text) > 12 else "no"} for text in MANY]
    assert answers["x0"]["prob"] == ({"yes": 0.75, "no": 0.25} if kind == "one" else None)


@pytest.mark.parametrize(
    ("kind", "port", "told"),
    [
        ("wrong", 8080, "The answer's id is not the uid of the example."),
        ("odd", 8080, "An answer must be an object with the field 'label'."),
        ("one", -1, "ended with code 1 before it listened on port 8080."),
    ],
)
def test_what_an_image_does_wrong_is_told(
    kind: str, port: int, told: str, built: Any, tmp_path: Path
) -> None:
    model = Runnable(image=built(kind, port), adapter="dynalab", fields=("text",), output="label")
    ending, answers = run(model, examples(tmp_path, ["text"]))
    assert ending.outcome == Outcome.MODEL_ERROR
    assert told in ending.log
    assert not answers


def test_the_image_of_the_documents_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text()
    dockerfile, script = (
        page.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("dockerfile", "python")
    )
    assert len((dockerfile + script).splitlines()) <= 15
    (tmp_path / "model.py").write_text(script)
    (tmp_path / "Dockerfile").write_text(dockerfile.replace("python:3.11-slim", "dynabench-base"))
    with closing(docker.from_env()) as client:
        image, _ = client.images.build(path=str(tmp_path), rm=True)
        labels = ("negative", "positive")
        model = Runnable(image=image.id, fields=("text",), output="label", labels=labels)
        ending, answers = run(model, examples(tmp_path, ["text"], ("a good film", "a film")))
        client.images.remove(image.id, force=True)
    assert ending.outcome == Outcome.OK
    assert [answers[f"x{n}"]["output"]["label"] for n in (0, 1)] == ["positive", "negative"]
