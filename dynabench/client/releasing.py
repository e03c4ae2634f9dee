"""The methods that make data, trained targets and evaluation sets of rounds."""

from pathlib import Path
from typing import Any, TypeVar, Unpack

from dynabench.client import types
from dynabench.client.errors import Refused
from dynabench.client.flow import Flow, method
from dynabench.client.http import Following
from dynabench.client.upload import Uploading

J = TypeVar("J", types.Release, types.WholeTraining)


class Releasing(Uploading, Following):
    """The methods about releases, trainings and the owners' evaluation sets."""

    # Data: a closed round becomes a version of a dataset, which can be undone until it is used.

    @method
    def releases(self, task: str, round: int) -> Flow[list[types.Release]]:
        """Return the versions of a round's data, also one that is being made; for owners."""
        return self._all(f"/tasks/{task}/rounds/{round}/datasets/")

    @method
    def release(
        self,
        task: str,
        round: int,
        wait: bool = True,
        timeout: float | None = None,
        **options: Unpack[types.NewRelease],
    ) -> Flow[types.Release]:
        """Release a closed round, or its next version, such as with `license="cc-by-4.0"`.

        `undo_release` takes it back until somebody has used it. wait: until its files are there,
        for at
        most `timeout` seconds. Raises Invalid, Refused (also where making them failed), TimedOut.
        """
        address = f"/tasks/{task}/rounds/{round}/datasets/"
        release: types.Release = yield from self._write("POST", address, options)

        def ask() -> Flow[types.Release]:
            releases: list[types.Release] = yield from self._all(address)
            # There is no address of one version while it is being made.
            return next(each for each in releases if each["version"] == release["version"])

        if not wait:
            return release
        return _check_done((yield from self._follow(ask, _describe_job, timeout)))

    @method
    def preview_release(
        self,
        task: str,
        round: int,
        train: int | None = None,
        dev: int | None = None,
        test: int | None = None,
        seed: int | None = None,
        hold_back: bool = False,
    ) -> Flow[types.ReleasePreview]:
        """Return what a release of these sizes would hold and leave out; nothing is stored.

        `release` takes the same sizes, and with `confirmed=preview["rows"]` is refused if the round
        has changed since. Raises Refused where no such release is possible, with sizes that are.
        """
        address = f"/tasks/{task}/rounds/{round}/datasets/preview/"
        sizes = {"train": train, "dev": dev, "test": test, "seed": seed}
        return self._get(address, **sizes, hold_back=hold_back or None)

    @method
    def undo_release(self, task: str, round: int, version: int = 1) -> Flow[None]:
        """Undo the release of a round that nobody has used; the round is closed again.

        Raises Refused, which names what prevents it.
        """
        return self._write("DELETE", f"/tasks/{task}/rounds/{round}/datasets/{version}/")

    @method
    def llm_judges(self, task: str) -> Flow[list[types.LlmJudge]]:
        """Return language models that judge free answers, with how far each agrees with people."""
        return self._all(f"/tasks/{task}/llm-judges/")

    @method
    def custom_metrics(self, task: str) -> Flow[list[types.CustomMetric]]:
        """Return the approved versions of the owners' own metrics, with their files."""
        return self._all(f"/tasks/{task}/metrics/")

    # Targets: models that are trained on released rounds.

    @method
    def trainings(self, task: str) -> Flow[list[types.Training]]:
        """Return the trainings of targets, the newest first."""
        return self._all(f"/tasks/{task}/trainings/")

    @method
    def train(self, task: str, **options: Unpack[types.NewTraining]) -> Flow[types.Training]:
        """Begin to train the next target, such as on `weights={"seed": 1, "round1": 2}`.

        `training` follows it. Raises Invalid, Refused while another training is running.
        """
        return self._write("POST", f"/tasks/{task}/trainings/", options)

    @method
    def training(
        self, task: str, training_id: int, wait: bool = True, timeout: float | None = None
    ) -> Flow[types.WholeTraining]:
        """Return a training with its report, once it has ended.

        wait: False returns at once how far it is. timeout: maximum seconds to wait. Raises Refused
        where it
        failed, TimedOut.
        """

        def ask() -> Flow[types.WholeTraining]:
            return self._get(f"/tasks/{task}/trainings/{training_id}/")

        if not wait:
            return (yield from ask())
        return _check_done((yield from self._follow(ask, _describe_job, timeout)))

    @method
    def register_target(
        self, task: str, training_id: int, round: int, name: str | None = None
    ) -> Flow[types.WholeTraining]:
        """Make a trained model a target of a round that has not been opened.

        round: the next number makes a draft. name: by default of task and round. Raises Refused.
        """
        body: dict[str, Any] = {"round": round}
        if name:
            body["name"] = name
        return self._write("POST", f"/tasks/{task}/trainings/{training_id}/target/", body)

    # Evaluation sets of the owner's own, and those that rounds become.

    @method
    def create_set(
        self, task: str, name: str, path: str | Path, **about: Unpack[types.AboutSet]
    ) -> Flow[types.EvaluationSet]:
        """Make an evaluation set of a file: JSON lines (also .gz), CSV or Parquet.

        Raises FileNotFoundError, and Invalid with each wrong line.
        """
        upload = yield from self._upload(Path(path))
        body = {"name": name, "upload": upload, **about}
        evaluation_set: types.EvaluationSet = yield from self._write(
            "POST", f"/tasks/{task}/evaluation-sets/", body
        )
        return evaluation_set

    @method
    def add_set_version(self, task: str, name: str, path: str | Path) -> Flow[types.EvaluationSet]:
        """Make the next version of an evaluation set of another file. Raises as `create_set`."""
        body = {"upload": (yield from self._upload(Path(path)))}
        address = f"/tasks/{task}/evaluation-sets/{name}/versions/"
        evaluation_set: types.EvaluationSet = yield from self._write("POST", address, body)
        return evaluation_set

    @method
    def change_set(
        self, task: str, name: str, **about: Unpack[types.AboutSet]
    ) -> Flow[types.EvaluationSet]:
        """Change who sees a set and its description, such as `access="hidden"`."""
        return self._write("PATCH", f"/tasks/{task}/evaluation-sets/{name}/", about)

    @method
    def take_round(self, task: str, name: str, reason: str = "") -> Flow[types.EvaluationSet]:
        """Make a closed round, as it is now, the next version of its set. Raises Refused.

        reason: why the set should not wait; needed while examples wait to be judged.
        """
        return self._write(
            "POST", f"/tasks/{task}/evaluation-sets/{name}/take/", {"reason": reason}
        )


def _describe_job(job: J) -> tuple[str, bool]:
    """Return how far a job is, and whether it has ended."""
    sentence = f"{job['message'] or job['state']} ({job['progress']:.0%})"
    return sentence, job["state"] not in ("queued", "running")


def _check_done(job: J) -> J:
    """Return a job that has done what it was for. Raises Refused."""
    if job["state"] != "done":
        raise Refused(job["error"] or f"It is {job['state']}.", code=job["state"])
    return job
