"""The part of the client for people who evaluate their own models, under leases."""

from pathlib import Path
from typing import Any

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.upload import Uploading


class Leasing(Uploading):
    """The client's methods for evaluating your own models on your machine."""

    @method
    def take_lease(
        self, task: str, model: str | None = None, evaluation_set: str | None = None
    ) -> Flow[types.Lease | None]:
        """Lease the oldest run that your machine may evaluate; None if there is none."""
        filters = {"model": model, "evaluation_set": evaluation_set}
        body = {name: value for name, value in filters.items() if value}
        return self._write("POST", f"/tasks/{task}/leases/", body)

    @method
    def fetch_lease(self, token: str, folder: str | Path) -> Flow[None]:
        """Download the model and the inputs of a leased run as `model.tar` and `inputs.jsonl`.

        folder: where they are written.
        """
        # Without a digest, so an interrupted download begins from the start.
        yield from self._fetch(f"/leases/{token}/model/", Path(folder, "model.tar"))
        yield from self._fetch(f"/leases/{token}/inputs/", Path(folder, "inputs.jsonl"))

    @method
    def end_lease(
        self, token: str, answers: str | Path | None, runner: str, ending: dict[str, Any]
    ) -> Flow[None]:
        """Send a file of answers, if any, and how the model ended. Raises Refused."""
        upload = None
        if answers:
            upload = yield from self._upload(Path(answers))
        body = {"upload": upload, "runner": runner, "ending": ending}
        yield from self._write("POST", f"/leases/{token}/answers/", body)
