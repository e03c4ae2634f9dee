"""The part of the client about tasks, rounds and their data."""

from pathlib import Path

from dynabench.client import types
from dynabench.client.errors import NotFound
from dynabench.client.flow import Flow, method
from dynabench.client.http import Requesting


class Tasks(Requesting):
    """The client's methods for tasks, rounds and data."""

    @method
    def download_data(
        self, task: str, round: int, version: int | None = None, to: str | Path = "."
    ) -> Flow[Path]:
        """Download a released round; return the folder with its files, which is created in `to`.

        version: by default the newest. An interrupted download resumes, each file's SHA-256 is
        checked, and existing files are not downloaded again. `as_pandas` and `as_dataset` read
        the folder. Raises NotFound, Damaged.
        """
        datasets: list[types.Dataset] = yield from self._iterate_pages(f"/tasks/{task}/datasets/")
        matching_datasets = [
            dataset
            for dataset in datasets
            if dataset["round"] == round and version in (None, dataset["version"])
        ]
        # Says what there is, as rounds have numbers and versions.
        if not matching_datasets:
            names = ", ".join(
                f"round {dataset['round']} v{dataset['version']}" for dataset in datasets
            )
            raise NotFound(
                f"This release doesn't exist. Releases of {task}: {names or 'none yet'}."
            )
        latest_dataset = max(matching_datasets, key=lambda dataset: dataset["version"])
        folder = Path(to) / f"{task}-round{round}-v{latest_dataset['version']}"
        files = f"/tasks/{task}/rounds/{round}/datasets/{latest_dataset['version']}/files"
        for file in latest_dataset["files"]:
            # Only the last part: a name with folders must not write elsewhere.
            name = Path(file["name"]).name
            yield from self._fetch(f"{files}/{name}", folder / name, file["sha256"], file["size"])
        return folder

    @method
    def export(self, task: str, round: int, to: str | Path = ".") -> Flow[Path]:
        """Download the current state of a round as JSON lines; return the file's path.

        Members only.
        """
        target = Path(to) / f"{task}-round{round}.jsonl"
        yield from self._fetch(f"/tasks/{task}/rounds/{round}/export/", target)
        return target

    @method
    def download_inputs(self, task: str, evaluation_set: str, to: str | Path = ".") -> Flow[Path]:
        """Download a set's inputs as JSON lines with `id` and `inputs`; return the file's path."""
        target = Path(to) / f"{task}-{evaluation_set}.inputs.jsonl"
        yield from self._fetch(f"/tasks/{task}/evaluation-sets/{evaluation_set}/inputs/", target)
        return target
