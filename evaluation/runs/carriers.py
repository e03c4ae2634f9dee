"""Choose where work runs: on the site's cluster (docs/cluster.md), or on this machine.

Both provide a `Runner` for a model in a sandbox; `evaluation.runs.handed` has the runner for a
submitter's own machine. docs/architecture.md shows what each does at each step.
Web processes import this module, so it loads cluster and model libraries only when called.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings

from evaluation.contract import GIB, BeatCallback, Runnable
from evaluation.isolation.queue.attempt_keys import build_container_key
from evaluation.isolation.sandbox.choose import choose_runner
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.models import CustomMetric, EvaluationRun, PracticeRun, Submission
from evaluation.training.trainer_protocol import LocalTrainer, Trainer
from tasks.models import TargetModel
from tasks.targets.connect import build_spec
from tasks.targets.endpoints.transport import Transport

if TYPE_CHECKING:
    from evaluation.runs.ray_runner import NodeClient


def has_cluster() -> bool:
    """Return whether this site has a cluster that runs models."""
    return bool(settings.RAY_ADDRESS)


def choose_sandbox(
    model: Runnable, job: EvaluationRun | Submission | CustomMetric, shard_size: int = 0
) -> Runner:
    """Return the runner that runs a model in a sandbox. Raises NoEngine.

    shard_size: the number of examples in one shard; 0 for the site's setting.
    """
    if not has_cluster():
        return choose_runner(model, build_container_key(job))
    from evaluation.runs.ray_runner import RayRunner  # only sites with a cluster have Ray

    return RayRunner(
        settings.RAY_ADDRESS, shard_size or settings.RAY_SHARD_EXAMPLES, build_container_key(job)
    )


def choose_practice_sandbox(
    model: Runnable, run: PracticeRun, read_more: Callable[[], bytes] | None = None
) -> Runner:
    """Return the runner of a model for practice: a container on this machine. Raises NoEngine.

    The cluster is not used, because people wait for each answer.
    read_more: returns further questions as whole lines, or empty bytes.
    """
    return choose_runner(model, build_container_key(run), "docker", read_more)


@contextmanager
def open_trainer(beat: BeatCallback) -> Iterator[Trainer]:
    """Provide a trainer on the site's cluster, or in this process without a cluster.

    beat: called regularly while the trainer works.
    """
    if not has_cluster():
        yield LocalTrainer(beat)
        return
    from evaluation.runs.ray_training import NodeTrainer

    with _make_node_client(beat) as node:
        yield NodeTrainer(node, beat)


@contextmanager
def open_cluster_transport(target: TargetModel, beat: BeatCallback) -> Iterator[Transport | None]:
    """Provide the transport that runs a language model of this site on the cluster.

    None if there is no cluster, or if the target is at an address: then call the target directly.
    An address needs no node, and its secret stays on this machine.
    """
    # A model with a URL already runs there.
    if not has_cluster() or target.url or not target.source:
        yield None
        return
    from evaluation.runs.ray_models import NodeTransport

    with _make_node_client(beat) as node:
        yield NodeTransport(node, build_spec(target))


def _make_node_client(beat: BeatCallback) -> "NodeClient":
    from evaluation.runs.ray_driver import ProcessRequest
    from evaluation.runs.ray_runner import NodeClient

    needs = {"CPU": settings.EVALUATION_CPUS, "memory": settings.EVALUATION_MEMORY_GIB * GIB}
    return NodeClient(ProcessRequest(settings.RAY_ADDRESS, needs), beat)
