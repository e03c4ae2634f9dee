"""The part of the client about leaderboards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Requesting

# By the name of a metric, of an evaluation set, or the code of a task.
Weights = Mapping[str, float]


class Boards(Requesting):
    """The client's methods for leaderboards."""

    @method
    def leaderboard(
        self,
        task: str,
        weights: Weights | None = None,
        datasets: Weights | None = None,
        mode: Literal["anchored", "robust", "classic"] | None = None,
        fork: str | None = None,
        mine: bool = False,
    ) -> Flow[types.Leaderboard]:
        """Return a task's models in order of their Dynascore.

        weights: the weights of metrics, such as `{"accuracy": 4, "throughput": 1}`. datasets: the
        weights of sets, such as `{"round-1": 5}`. Weights are from 0 to 8 and default to the
        owner's (or the fork's). mode: `classic` is the published formula, and `robust` a
        variant with frozen exchange rates. `anchored` (0 to 100) is the default if the task has a
        reference pool. mine: include your own unpublished models.
        Scores on `sets` with `is_sealed` are rounded.
        """
        params: dict[str, Any] = {"mode": mode, "fork": fork}
        if mine:
            params["mine"] = 1
        params |= {f"w_{name}": weight for name, weight in (weights or {}).items()}
        params |= {f"d_{name}": weight for name, weight in (datasets or {}).items()}
        return self._get(f"/tasks/{task}/leaderboard/", **params)

    @method
    def compare(
        self, a: str, b: str, evaluation_set: str | None = None
    ) -> Flow[types.ModelComparison]:
        """Compare two models of a task on every set; say which differences may be due to chance.

        evaluation_set: one of the sets in `readable`, to get examples on which the models differ.
        Rows with `is_rounded` belong to sealed sets, whose scores are rounded.
        """
        # The server compares models of one task, whose address has its code.
        task = (yield from self._get(f"/models/{a}/"))["task"]
        address = f"/tasks/{task}/leaderboard/compare/"
        comparison: types.ModelComparison = yield from self._get(
            address, a=a, b=b, set=evaluation_set, mine=1
        )
        return comparison

    @method
    def download_evidence(
        self, task: str, snapshot: int, evaluation_set: str, to: str | Path = "."
    ) -> Flow[tuple[Path, Path]]:
        """Download what a snapshot's scores on a set are computed from.

        Returns the files of labels and of answers. Raises NotFound if they are not public.
        """
        address = f"/tasks/{task}/leaderboard/snapshots/{snapshot}/evidence/{evaluation_set}"
        # Only the last part, because the name comes from the server and must not write elsewhere.
        file_name = Path(evaluation_set).name
        labels = Path(to) / f"{file_name}.labels.jsonl"
        answers = Path(to) / f"{file_name}.answers.jsonl"
        yield from self._fetch(f"{address}/labels/", labels)
        yield from self._fetch(f"{address}/answers/", answers)
        return labels, answers

    @method
    def download_perturbed(
        self, task: str, snapshot: int, evaluation_set: str, to: str | Path = "."
    ) -> Flow[Path]:
        """Download what a snapshot's robustness and fairness on a set are computed from.

        Returns the file of answers to perturbed examples. Raises NotFound if they are not public.
        """
        address = f"/tasks/{task}/leaderboard/snapshots/{snapshot}/evidence/{evaluation_set}"
        # Only the last part, because the name comes from the server and must not write elsewhere.
        path = Path(to) / f"{Path(evaluation_set).name}.perturbed.jsonl"
        yield from self._fetch(f"{address}/perturbed/", path)
        return path
