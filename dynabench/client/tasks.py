"""Tasks, rounds and their data."""

from pathlib import Path

from dynabench.client import types
from dynabench.client.errors import NotFound
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking


class Tasks(Asking):
    """The methods about tasks, rounds and data."""

    @method
    def me(self) -> Flow[types.Me]:
        """Whose key it is, what it may do and when it ends."""
        return self._get("/me/")

    @method
    def tasks(self) -> Flow[list[types.Task]]:
        """The tasks that one may see."""
        return self._all("/tasks/")

    @method
    def task(self, task: str) -> Flow[types.FullTask]:
        """A task by its code, such as `nli`."""
        return self._get(f"/tasks/{task}/")

    @method
    def rounds(self, task: str) -> Flow[list[types.Round]]:
        """The rounds of a task."""
        return self._all(f"/tasks/{task}/rounds/")

    @method
    def statistics(self, task: str) -> Flow[types.Statistics]:
        """The numbers of each of its rounds, and of all of them."""
        return self._get(f"/tasks/{task}/statistics/")

    @method
    def datasets(self, task: str) -> Flow[list[types.Dataset]]:
        """The released versions of a task's rounds, with their files."""
        return self._all(f"/tasks/{task}/datasets/")

    @method
    def download_data(
        self, task: str, round: int, version: int | None = None, to: str | Path = "."
    ) -> Flow[Path]:
        """The folder with the files of a released round, which is made below `to`.

        version: the newest unless told. A download that broke off goes on; each file's SHA-256 is
        checked, and a file that is here is not asked for again. `as_pandas` and `as_dataset` read
        the folder. Raises NotFound, Damaged.
        """
        every: list[types.Dataset] = yield from self._all(f"/tasks/{task}/datasets/")
        mine = [one for one in every if one["round"] == round and version in (None, one["version"])]
        if not mine:
            known = ", ".join(f"round {one['round']} v{one['version']}" for one in every)
            raise NotFound(f"{task} has released: {known or 'nothing yet'}.")
        found = max(mine, key=lambda one: one["version"])
        folder = Path(to) / f"{task}-round{round}-v{found['version']}"
        files = f"/tasks/{task}/rounds/{round}/datasets/{found['version']}/files"
        for file in found["files"]:
            name = Path(file["name"]).name
            yield from self._fetch(f"{files}/{name}", folder / name, file["sha256"], file["size"])
        return folder

    @method
    def export(self, task: str, round: int, to: str | Path = ".") -> Flow[Path]:
        """The file with all of a round as it is now, as JSON lines; for members of its task."""
        target = Path(to) / f"{task}-round{round}.jsonl"
        yield from self._fetch(f"/tasks/{task}/rounds/{round}/export/", target)
        return target

    @method
    def evaluation_sets(self, task: str) -> Flow[list[types.EvaluationSet]]:
        """The sets that models are scored on."""
        return self._all(f"/tasks/{task}/evaluation-sets/")

    @method
    def download_inputs(self, task: str, evaluation_set: str, to: str | Path = ".") -> Flow[Path]:
        """The file with a set's inputs, as JSON lines of `id` and `inputs`: what to predict."""
        target = Path(to) / f"{task}-{evaluation_set}.inputs.jsonl"
        yield from self._fetch(f"/tasks/{task}/evaluation-sets/{evaluation_set}/inputs/", target)
        return target

    @method
    def check_inputs(self, task: str) -> Flow[types.Check]:
        """What a model must be (`model`), and the inputs that it gets when it arrives."""
        return self._get(f"/tasks/{task}/check-inputs/")
