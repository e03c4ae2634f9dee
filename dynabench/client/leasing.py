"""Flows by which people evaluate their own models on their own machines, under leases."""

from pathlib import Path
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.upload import Uploading


class Leasing(Uploading):
    """The methods about one's own machines, and of owners about who may use theirs."""

    @method
    def own_workers(self, task: str) -> Flow[list[types.OwnWorker]]:
        """Return who may evaluate models of a task on their own machines; for owners."""
        return self._all(f"/tasks/{task}/own-workers/")

    @method
    def add_own_worker(
        self,
        task: str,
        email: str,
        *,
        model: str | None = None,
        evaluation_set: str | None = None,
        takes_sealed: bool = False,
        second: Literal["nobody", "site", "worker"] = "site",
    ) -> Flow[types.OwnWorker]:
        """Let an account evaluate all of its models, or one model, or on one set; for owners.

        takes_sealed: you agree that inputs of sealed sets go there, which is logged. second: who
        answers a
        random tenth too and must agree. Raises Invalid, NotFound, Refused.
        """
        body = {
            "email": email,
            "takes_sealed": takes_sealed,
            "second": second,
            "model": model,
            "evaluation_set": evaluation_set,
        }
        return self._write("POST", f"/tasks/{task}/own-workers/", body)

    @method
    def remove_own_worker(self, task: str, worker_id: int) -> Flow[None]:
        """Withdraw such a permission; for owners."""
        return self._write("DELETE", f"/tasks/{task}/own-workers/{worker_id}/")

    @method
    def take_lease(
        self, task: str, model: str | None = None, evaluation_set: str | None = None
    ) -> Flow[types.Lease | None]:
        """Lease the oldest run that one's machine may evaluate; None: there is none."""
        filters = {"model": model, "evaluation_set": evaluation_set}
        body = {name: value for name, value in filters.items() if value}
        return self._write("POST", f"/tasks/{task}/leases/", body)

    @method
    def keep_lease(self, token: str, progress: float = 0.0) -> Flow[None]:
        """Extend a lease by two minutes. Raises NotFound or Refused where it is lost."""
        return self._write("POST", f"/leases/{token}/keep/", {"progress": progress})

    @method
    def fetch_lease(self, token: str, folder: str | Path) -> Flow[None]:
        """Write `model.tar` and `inputs.jsonl` of a lease into a folder."""
        # Without a digest, so an interrupted download begins from the start.
        yield from self._fetch(f"/leases/{token}/model/", Path(folder, "model.tar"))
        yield from self._fetch(f"/leases/{token}/inputs/", Path(folder, "inputs.jsonl"))

    @method
    def end_lease(
        self, token: str, answers: str | Path | None, runner: str, ending: dict[str, Any]
    ) -> Flow[None]:
        """Send a file of answers, if there is one, and how the model ended. Raises Refused."""
        upload = None
        if answers:
            upload = yield from self._upload(Path(answers))
        body = {"upload": upload, "runner": runner, "ending": ending}
        yield from self._write("POST", f"/leases/{token}/answers/", body)
