"""A client that a generator makes of the published schema does five jobs at a running site.

Its generator is installed into an environment of its own.
"""

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

from core.accounts.tokens import create_token
from evaluation.models import EvaluationSet, Submission
from evaluation.test_sets.services import make_version
from tests.support.boards import ranks_any
from tests.support.evaluations import nli_rows, without_deltas
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.live import ROOT, web_server
from validation.models import Validation

pytestmark = pytest.mark.skipif(
    "REAL_SERVERS" not in os.environ, reason="installs others' programs"
)
HERE = Path(__file__).parent
SCHEMA = ROOT / "docs" / "openapi-v1.yaml"
CONFIG = "project_name_override: generated\npackage_name_override: generated\npost_hooks: []\n"


def test_five_jobs_by_a_generated_client(tmp_path: Path) -> None:
    first = RoundFactory(task=TaskFactory(code="nli"), state="closed")
    one = EvaluationSet.objects.create(
        task=first.task, name="round-1", source="round", round=first, access="scoring",
        may_leave=True, answers_public=True,
    )  # fmt: skip
    make_version(one, nli_rows(12), None)
    without_deltas(first.task)
    ranks_any(first.task)
    first.task.config_text += "\nprograms: {judge: true}\n"
    first.task.save(update_fields=["config_text"])
    live = RoundFactory(task=first.task, number=2)
    ContextFactory(round=live)
    scripted_target(live, output={"label": "entailment"}, prob={"entailment": 1.0})
    scopes = ["read", "annotate", "submit"]
    writer, judge = (
        create_token(user=UserFactory(), name="a", scopes=scopes, days=1)[1] for _ in range(2)
    )
    file = tmp_path / "answers.jsonl"
    file.write_text('{"id": "a", "output": {"label": "neutral"}}\n')
    python = _generated(tmp_path)
    with web_server(tmp_path) as url:
        ran = subprocess.run(
            [python, HERE / "generated_walk.py", url, writer, judge, file],
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    vote = Validation.objects.get()
    assert told == {
        "rounds": [1, 2], "board": [], "kind": "predictions", "outcome": "fooled",
        "example": str(vote.example.uuid), "vote": told["vote"],
    }  # fmt: skip
    assert Submission.objects.get().upload.pieces.count() == 1


def _generated(folder: Path) -> Path:
    """Make the client, a package `generated` in the folder; the Python that runs it."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pins = HERE / "generated_client.txt"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", pins], check=True)
    (folder / "config.yaml").write_text(CONFIG)
    make = [python, "-m", "openapi_python_client", "generate", "--meta", "none"]
    make += ["--path", SCHEMA, "--config", folder / "config.yaml"]
    subprocess.run([*make, "--output-path", folder / "generated"], check=True)
    return python
