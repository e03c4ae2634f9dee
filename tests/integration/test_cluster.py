"""Jobs on a Ray cluster of three nodes of this machine: as without, also while nodes die.

KILLS says how many nodes are killed, one in each run.
"""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from PIL import Image

from evaluation import jobs
from evaluation.contract import Outcome, Runnable
from evaluation.heartbeat import skip_beat
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.models import EvaluationRun
from evaluation.runs.ray_driver import ClusterJob, ProcessRequest, RunConnection
from evaluation.runs.ray_models import NodeTransport
from evaluation.runs.ray_runner import NodeClient, RayRunner
from evaluation.runs.ray_training import NodeTrainer
from evaluation.training.data import TrainingError
from evaluation.training.fine_tune import Reading, TrainingOptions, TrainingReport
from evaluation.training.trainer_protocol import LocalTrainer, Trainer
from serving.spec import ModelSpec
from tasks.models import TargetModel
from tasks.targets.endpoints.transport import RETRY_CAREFUL
from tests.support.cluster import LIMITS, Nodes, dies_once, nodes, waiting
from tests.support.evaluations import accepted_model, nli_rows, queued_run, set_version
from tests.support.factories import TaskFactory
from tests.support.serving_models import says, tiny_model

pytestmark = [
    pytest.mark.nightly("cluster"),
    pytest.mark.skipif(not find_spec("ray"), reason="needs ray (requirements-ray.txt)"),
    pytest.mark.django_db,  # all of them, or others run in between and the cluster starts again
]
KILLS = int(os.environ.get("KILLS") or 10)
SHARD, SHARDS = 4, 9


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with nodes(3, tmp_path_factory.mktemp("nodes")) as started:
        yield started


@pytest.fixture
def job(cluster: Nodes, tmp_path: Path) -> ClusterJob:
    inputs = tmp_path / "examples.jsonl"
    rows = [{"id": f"x{n}", "inputs": {"text": "a"}} for n in range(SHARD * SHARDS)]
    inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ClusterJob(cluster.address, SHARD, "cluster", Runnable(), inputs, LIMITS, waiting)


def test_the_scores_are_those_of_one_machine(cluster, settings, monkeypatch, tmp_path):
    """A real model, whose numbers depend on what its batches are padded to."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    settings.MEDIA_ROOT, settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS = tmp_path, 1, 1
    task = TaskFactory(code="nli")
    rows = [
        replace(row, inputs={**row.inputs, "premise": "It rained. " * (n % 40 + 1)})
        for n, row in enumerate(nli_rows(240))
    ]
    version = set_version(task, rows=rows)
    weights = tiny_model(tmp_path / "model", "pair-classification")
    settings.RAY_SHARD_EXAMPLES = 130
    found = []
    for name, address in (("here", ""), ("there", cluster.address)):
        settings.RAY_ADDRESS = address
        target = TargetModel.objects.create(
            task=task, name=name, source=str(weights), allowed_folder=str(weights)
        )
        model = accepted_model(task, name=name, kind="target", target=target)
        run = queued_run(model, version)
        jobs.evaluate_next(run.pk)
        run.refresh_from_db()
        assert (run.state, run.outcome) == (EvaluationRun.State.DONE, "ok"), run.error
        with run.predictions.open("rb") as file, gzip.open(file) as lines:
            answers = [json.loads(line) for line in lines]
        numbers = run.scores.values_list("metric", "slice", "value", "low", "high", "n")
        found.append((answers, sorted(numbers)))
        assert run.usage["answers"] == 240
        assert run.usage["latency_seconds"] > 0
    assert run.runner == "ray-process"
    assert found[0] == found[1]
    assert len({answer["prob"]["neutral"] for answer in found[0][0]}) > 20


def test_a_killed_node_costs_its_shards_alone(cluster: Nodes, job: ClusterJob) -> None:
    """kill -9 of a node in the middle of a run, again and again: each time one whole result."""
    with RunConnection(job) as connected:
        for _ in range(KILLS):
            answers: list[bytes] = []
            for number, done in connected.iterate_shards():
                assert done.ending.outcome == Outcome.OK
                answers += done.answers
                if number >= 0 and len(answers) == 2 * SHARD:
                    cluster.kill()
            cluster.add()
            ids = sorted(json.loads(line)["id"] for line in answers)
            assert ids == sorted(f"x{n}" for n in range(SHARD * SHARDS))
    assert connected.runner == "ray-waiting"


def test_what_the_heartbeat_raises_ends_it_and_no_cluster_is_waited_for(
    cluster: Nodes, job: ClusterJob
) -> None:
    answers: list[bytes] = []
    runner = RayRunner(cluster.address, SHARD, "cluster", waiting)

    def beat() -> None:
        if answers:
            raise RuntimeError("the lease is lost")

    with pytest.raises(RuntimeError, match="the lease is lost"):
        runner.run(job.model, job.inputs, LIMITS, take=answers.append, beat=beat)
    assert 0 < len(answers) < SHARD * SHARDS
    on_gpu = replace(job.model, gpu="any")
    with pytest.raises(NoEngine, match="GPU"):
        runner.run(on_gpu, job.inputs, LIMITS, take=answers.append, beat=lambda: None)


def test_errands_are_done_as_here_and_again_where_a_node_dies(
    cluster: Nodes, tmp_path: Path
) -> None:
    """A training, answers, pictures and a language model, in one process of a node."""
    place = ProcessRequest(cluster.address, {"CPU": 1, "memory": 2**20, "other": 1})
    kept, threads = tmp_path / "kept", torch.get_num_threads()
    torch.set_num_threads(1)  # as the node does
    with NodeClient(place, skip_beat) as node:
        assert [*node.do_errand(dies_once, str(tmp_path / "mark"), target=kept)] == ["done"]
        assert kept.read_bytes() == b"whole"
        there = NodeTrainer(node, skip_beat)
        assert _learned(there, tmp_path / "a") == _learned(LocalTrainer(skip_beat), tmp_path / "b")
        with pytest.raises(TrainingError, match="premise"):
            _trained(there, [{}], tmp_path)
        writer = says(tmp_path / "writer", "correct", hidden_size=32)
        spec = ModelSpec("ours", str(writer), precision="fp32")
        asked = {"model": "ours", "messages": [{"role": "user", "content": "a"}], "max_tokens": 9}
        reply = NodeTransport(node, spec).request(
            "POST",
            httpx.URL("http://127.0.0.1:9/v1/chat/completions"),
            seconds=60,
            max_bytes=10_000,
            allowed_hosts=False,
            secret=None,
            payload=asked | {"temperature": 0},
            retry=RETRY_CAREFUL,
        )
        (choice,) = json.loads(reply.body)["choices"]
        assert choice["message"]["content"] == "correct"
    torch.set_num_threads(threads)
    waits = NodeClient(ProcessRequest(cluster.address, {"GPU": 1}), skip_beat)
    with waits as node, pytest.raises(NoEngine, match="1 GPU"):
        next(node.do_errand(dies_once, ""))


def _trained(trainer: Trainer, rows: list[Any], folder: Path) -> TrainingReport:
    return trainer.train(
        rows,
        kind="pair-classification",
        base=tiny_model(folder / "base", "pair-classification"),
        output_dir=folder / "made",
        options=TrainingOptions(epochs=1),
        progress=lambda *told: None,
    )


def _learned(trainer: Trainer, folder: Path) -> Any:
    """All that comes of training, of asking the model, and of looking at pictures."""
    rows = [
        {"premise": f"It rains {n}.", "hypothesis": "Wet.", "label": f"l{n % 2}", "group": f"{n}"}
        for n in range(40)
    ]
    report = _trained(trainer, rows, folder)
    reading = Reading("pair-classification", ("l0", "l1"), 64)
    said = trainer.compute_answers(folder / "made", rows[:5], reading)
    pictures = [folder / f"{shade}.png" for shade in (0, 200)]
    for shade, path in enumerate(pictures):
        Image.new("RGB", (8, 8), (shade * 200,) * 3).save(path)
    labelled = [(path, path.stem) for path in pictures]
    trainer.learn_pictures(labelled, ("0", "200"), folder / "looks")
    return replace(report, seconds=0.0), said, digest_folder(folder / "looks", skip_beat)
