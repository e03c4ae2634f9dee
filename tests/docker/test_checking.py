"""The check of a model as a program, in the sandbox, where nothing of Django is."""

import json
import subprocess
import sys
import uuid

import pytest

from evaluation.isolation.inference.precheck import main
from evaluation.isolation.sandbox.containers import RUNTIME_IMAGE, list_own_containers
from evaluation.isolation.sandbox.images import has_image
from tasks.services import OFFICIAL_FOLDER
from tests.support.serving_models import tiny_model

ANSWERING = """
import json
for line in open("/input/examples.jsonl"):
    print(json.dumps({"id": json.loads(line)["id"], "output": {"label": "LABEL"}}))
"""


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Exit status and report of the check of a model, which leaves no container."""
    keys = []
    make_key = uuid.uuid4

    def note_key():
        keys.append(make_key())
        return keys[-1]

    monkeypatch.setattr(uuid, "uuid4", note_key)  # checks of others may be under way on the engine
    inputs = tmp_path / "five.jsonl"
    row = {"inputs": {"premise": "One.", "hypothesis": "It."}}
    inputs.write_text(5 * (json.dumps(row) + "\n"))
    asked = ["--config", str(OFFICIAL_FOLDER / "nli" / "task.yaml"), "--inputs", str(inputs)]

    def check(model):
        code = main([str(model), *asked, "--runner", "docker"])
        own_checks = {f"check-{key.hex}" for key in keys}
        assert own_checks.isdisjoint(container.key for container in list_own_containers("check-"))
        return code, json.loads(capsys.readouterr().out)

    return check


def image(bench, label):
    command = json.dumps(["python3", "-c", ANSWERING.replace("LABEL", label)])
    return bench.build_image("ENTRYPOINT []", f"CMD {command}")


def test_an_image_answers_five(bench, check):
    code, report = check(image(bench, "neutral"))
    assert (code, report["outcome"]) == (0, "ok")
    assert report["runner"].startswith("docker")
    assert report["answers"] == 5 * [{"answer": "neutral", "prob": None}]


def test_an_image_is_refused_as_on_arrival(bench, check):
    code, report = check(image(bench, "maybe"))
    assert (code, report["outcome"]) == (1, "invalid_output")
    assert 'Line 1: "maybe"' in report["message"]
    assert "5 of 5 examples" in report["message"]
    assert "declares volumes" in check(bench.build_image('VOLUME ["/data"]'))[1]["message"]
    assert "no-such-image" in check("no-such-image")[1]["message"]


def test_a_folder_is_checked_by_itself_without_django(bench, check, tmp_path):
    if not has_image(RUNTIME_IMAGE):
        subprocess.run(["scripts/runtime_image.sh"], check=True)
    code, report = check(tiny_model(tmp_path / "model", "pair-classification"))
    assert (code, report["outcome"]) == (0, "ok")
    program = (
        "import sys; from evaluation.isolation.inference import precheck\n"
        "from evaluation.isolation.sandbox import choose, containers, process\n"
        "print(*{name.partition('.')[0] for name in sys.modules} & {'django', 'rest_framework'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
