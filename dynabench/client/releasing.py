"""The part of the client about releases, trained targets and owners' evaluation sets."""

from pathlib import Path
from typing import Any, TypeVar, Unpack

from dynabench.client import types
from dynabench.client.errors import Refused
from dynabench.client.flow import Flow, method
from dynabench.client.http import Polling
from dynabench.client.upload import Uploading

J = TypeVar("J", types.Release, types.WholeTraining, types.AdversaryImage)


class Releasing(Uploading, Polling):
    """The client's methods for releases, training runs and owners' evaluation sets."""

    # Data: a closed round becomes a version of a dataset, which can be undone until it is used.

    @method
    def release(
        self,
        task: str,
        round: int,
        wait: bool = True,
        timeout: float | None = None,
        **options: Unpack[types.NewRelease],
    ) -> Flow[types.Release]:
        """Release a closed round, or a new version of a released one.

        options: the fields of a release, such as `license="cc-by-4.0"`. `undo_release` undoes it
        until somebody has used it. wait: whether to wait until its files exist, for at most
        `timeout` seconds. Raises Invalid, Refused (also if creating the files failed), TimedOut.
        """
        address = f"/tasks/{task}/rounds/{round}/datasets/"
        release: types.Release = yield from self._write("POST", address, options)

        def fetch_job() -> Flow[types.Release]:
            releases: list[types.Release] = yield from self._iterate_pages(address)
            # There is no address of one version while it is being made.
            return next(each for each in releases if each["version"] == release["version"])

        if not wait:
            return release
        return _check_done((yield from self._poll_job(fetch_job, _describe_job, timeout)))

    # Targets: models that are trained on released rounds.

    @method
    def training(
        self, task: str, training_id: int, wait: bool = True, timeout: float | None = None
    ) -> Flow[types.WholeTraining]:
        """Return a training run with its report, once it has ended.

        wait: False returns its state at once. timeout: maximum seconds to wait. Raises Refused
        if it failed, TimedOut.
        """

        def fetch_job() -> Flow[types.WholeTraining]:
            return self._get(f"/tasks/{task}/trainings/{training_id}/")

        if not wait:
            return (yield from fetch_job())
        return _check_done((yield from self._poll_job(fetch_job, _describe_job, timeout)))

    @method
    def register_target(
        self, task: str, training_id: int, round: int, name: str | None = None
    ) -> Flow[types.WholeTraining]:
        """Register a trained model as a target of a round that has not been opened.

        round: the next unused number creates a draft round. name: by default made from task and
        round. Raises Refused.
        """
        body: dict[str, Any] = {"round": round}
        if name:
            body["name"] = name
        return self._write("POST", f"/tasks/{task}/trainings/{training_id}/target/", body)

    # Evaluation sets of the owner's own, and those that rounds become.

    @method
    def create_set(
        self, task: str, name: str, path: str | Path, **fields: Unpack[types.AboutSet]
    ) -> Flow[types.EvaluationSet]:
        """Create an evaluation set from a file: JSON lines (also .gz), CSV or Parquet.

        Raises FileNotFoundError, and Invalid with each wrong line.
        """
        upload = yield from self._upload(Path(path))
        body = {"name": name, "upload": upload, **fields}
        evaluation_set: types.EvaluationSet = yield from self._write(
            "POST", f"/tasks/{task}/evaluation-sets/", body
        )
        return evaluation_set

    @method
    def add_set_version(self, task: str, name: str, path: str | Path) -> Flow[types.EvaluationSet]:
        """Create the next version of an evaluation set from another file.

        Raises the same errors as `create_set`.
        """
        body = {"upload": (yield from self._upload(Path(path)))}
        address = f"/tasks/{task}/evaluation-sets/{name}/versions/"
        evaluation_set: types.EvaluationSet = yield from self._write("POST", address, body)
        return evaluation_set

    # Programs in containers that search for a task's failures.

    @method
    def bring_image(
        self,
        task: str,
        adversary_id: int,
        path: str | Path | None = None,
        source: str = "",
        wait: bool = True,
        timeout: float | None = None,
    ) -> Flow[types.AdversaryImage]:
        """Bring the image of an adversary's program: a file of `docker save`, or a registry image.

        source: its name with its digest, `name@sha256:…`. wait: whether to wait until it is
        checked, for at most `timeout` seconds. Raises FileNotFoundError, Invalid, Refused (also if
        the check fails), TimedOut.
        """
        address, body = f"/tasks/{task}/adversaries/{adversary_id}/images/", {"source": source}
        if path:
            body["upload"] = yield from self._upload(Path(path))
        image: types.AdversaryImage = yield from self._write("POST", address, body)
        if not wait:
            return image

        def fetch_job() -> Flow[types.AdversaryImage]:
            images: list[types.AdversaryImage] = yield from self._iterate_pages(address)
            # There is no address of a single image.
            [same_image] = [each for each in images if each["number"] == image["number"]]
            return same_image

        checked_image = yield from self._poll_job(fetch_job, _describe_job, timeout)
        return _check_done(checked_image)


def _describe_job(job: J) -> tuple[str, bool]:
    """Return (a job's progress as a sentence, whether it has ended)."""
    sentence = f"{job['message'] or job['state']} ({job['progress']:.0%})"
    return sentence, job["state"] not in ("queued", "running")


def _check_done(job: J) -> J:
    """Return the job if it succeeded. Raises Refused otherwise."""
    if job["state"] != "done":
        raise Refused(job["error"] or f"The job is {job['state']}.", code=job["state"])
    return job
