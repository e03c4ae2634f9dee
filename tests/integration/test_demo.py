"""The whole loop with real models: write, judge, release, train, evaluate, rank; then forget."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection

from annotation.models import Example
from core.jobs import queue
from dynabench.operations.demo.community import make_task
from dynabench.operations.demo.loop import DemoSize, run_demo
from dynabench.operations.demo.server import open_site_or_substitute
from dynabench.operations.demo.texts import LABELS
from evaluation.dataset_releases.files import compute_digest
from evaluation.models import Dataset, DatasetFile, EvaluationRun
from leaderboard.board.tables import build_public_table
from tasks.models import SIMULATED_TASK_CODE, Round, Task
from tests.support.parts import free_port
from tests.support.programs import PRODUCT_ONLY
from tests.support.serving_models import tiny_model

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch, settings) -> Path:
    """For the processes that serve, train and evaluate: this test's database and a free port."""
    name = Path(connection.settings_dict["NAME"]).resolve()
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{name}")
    monkeypatch.setenv("DYNABENCH_HOME", str(tmp_path))
    monkeypatch.setenv("MODEL_SERVER_URL", url)
    monkeypatch.setenv("PYTHONPATH", PRODUCT_ONLY)
    settings.MODEL_SERVER_URL = url
    settings.HOME, settings.MODELS_HOME = tmp_path, tmp_path / "models"
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path


def check_what_leaves(folder: Path, task: Task, model_count: int):
    """Publish the demo's round and board into a folder, and compare them with the tables."""
    out, files = StringIO(), DatasetFile.objects.filter(is_public=True)
    round_folder, board_folder = folder / "round", folder / "board"
    call_command("publish", task.code, 1, to="folder", output=round_folder, stdout=out)
    found = {path.name: compute_digest(path) for path in round_folder.iterdir()}
    assert found == dict(files.values_list("name", "sha256"))
    assert found.keys() >= {"README.md", "croissant.json", "SHA256SUMS", "train.jsonl"}
    # Without prompts there are no questions, and the command says so.
    assert ("eval.yaml" in found) != ("no eval.yaml" in out.getvalue())
    options = {"to": "every-eval-ever", "output": board_folder}
    call_command("export_board", task.code, stdout=out, **options)
    records = [json.loads(path.read_text()) for path in board_folder.rglob("*.json")]
    model_ids = {record["model_info"]["id"] for record in records}
    assert len(records) == len(model_ids) == model_count


def test_the_whole_loop(home):
    base = tiny_model(home / "base", "sequence-classification", labels=LABELS)
    with open_site_or_substitute():
        report = run_demo(make_task(), 1, lambda share, words: None, DemoSize(6, 6, 30, 1), base)
    task = Task.objects.get(code=SIMULATED_TASK_CODE)
    json.dumps(report)
    assert queue.is_queue_empty()  # a later site has nothing to do

    kept = Example.objects.filter(round__number=1, retracted_at__isnull=True)
    fooled = kept.filter(outcome="fooled")
    verified = fooled.filter(consensus__is_verified=True)
    (first,) = report["rounds"]
    assert first == {
        "round": 1,
        "collected": kept.count(),
        "fooled": fooled.count(),
        "verified_fooled": verified.count(),
        "vmer": verified.count() / kept.count(),
    }
    assert report["models"] == len(build_public_table(task)["rows"]) == 4

    assert list(task.rounds.values_list("state", flat=True)) == [
        Round.State.RELEASED,
        Round.State.OPEN,
    ]
    assert task.training_runs.get().target in task.rounds.get(number=2).targets.all()
    assert set(EvaluationRun.objects.values_list("outcome", flat=True)) == {"ok"}
    for file in DatasetFile.objects.all():
        with file.file.open("rb") as content:
            assert not file.size or b"simulated" in content.read().lower(), file.name

    check_what_leaves(home / "out", task, report["models"])
    call_command("forget_demo")
    assert not Dataset.objects.exists()
    assert not default_storage.listdir("releases/demo-simulated-round1-v1")[1]
    assert not (home / "models" / "targets" / SIMULATED_TASK_CODE).exists()
