"""Leaderboards."""

from collections.abc import Mapping
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

# By the name of a metric, of an evaluation set, or the code of a task.
Weights = Mapping[str, float]


class Boards(Asking):
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

        weights: of metrics, as `{"accuracy": 4, "throughput": 1}`. datasets: weights of sets, as
        `{"round-1": 5}`. Both are 0 to 8 and default to the owner's (or the fork's). mode:
        `classic` is the published formula; `anchored` (0 to 100) is the default if the task has a
        reference pool. mine: include your own unpublished models. Scores on `sets` with `is_sealed`
        are rounded.
        """
        params: dict[str, Any] = {"mode": mode, "fork": fork}
        if mine:
            params["mine"] = 1
        params |= {f"w_{name}": weight for name, weight in (weights or {}).items()}
        params |= {f"d_{name}": weight for name, weight in (datasets or {}).items()}
        return self._get(f"/tasks/{task}/leaderboard/", **params)

    @method
    def compare(self, a: str, b: str, evaluation_set: str | None = None) -> Flow[types.Compared]:
        """Compare two models of a task on every set; say which differences may be chance.

        evaluation_set: one of those in `readable`, to get examples on which the models differ. Rows
        with `is_rounded` are of sealed sets, whose scores are rounded.
        """
        # The server compares models of one task, whose address has its code.
        task = (yield from self._get(f"/models/{a}/"))["task"]
        address = f"/tasks/{task}/leaderboard/compare/"
        comparison: types.Compared = yield from self._get(
            address, a=a, b=b, set=evaluation_set, mine=1
        )
        return comparison
