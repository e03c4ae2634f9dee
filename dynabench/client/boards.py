"""Leaderboards."""

from collections.abc import Mapping
from typing import Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

Weights = Mapping[str, float]


class Boards(Asking):
    """The methods about leaderboards."""

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
        """A task's models in order of their Dynascore.

        weights: of metrics, as `{"accuracy": 4, "throughput": 1}`; datasets: of sets, as
        `{"round-1": 5}`; both 0 to 8, the owner's (or the fork's) unless told. mode: `classic` is
        the published formula, `anchored` (0 to 100) is usual where the task has a reference pool.
        mine: one's own unpublished models too. Of `sets` with `is_sealed` the scores are rounded.
        """
        asked = {f"w_{name}": weight for name, weight in (weights or {}).items()}
        asked |= {f"d_{name}": weight for name, weight in (datasets or {}).items()}
        options = {"mode": mode, "fork": fork, "mine": 1 if mine else None}
        return self._get(f"/tasks/{task}/leaderboard/", **asked, **options)

    @method
    def compare(self, a: str, b: str, evaluation_set: str | None = None) -> Flow[types.Compared]:
        """Two models of a task on every set, with what of their differences may be chance.

        evaluation_set: one of those in `readable`, to get examples on which they differ. Rows with
        `is_rounded` are of sealed sets, whose scores are rounded.
        """
        task = (yield from self._get(f"/models/{a}/"))["task"]
        asked = {"a": a, "b": b, "set": evaluation_set, "mine": 1}
        found: types.Compared = yield from self._get(f"/tasks/{task}/leaderboard/compare/", **asked)
        return found

    @method
    def training_dates(self, task: str) -> Flow[types.TrainingDates]:
        """Models' accuracy before and after the day until which they were trained."""
        return self._get(f"/tasks/{task}/leaderboard/training-dates/")

    @method
    def follow(self, task: str, follows: bool = True) -> Flow[types.Following]:
        """Get a mail when a round of the task is released; False: no more."""
        return self._write("POST", f"/tasks/{task}/follow/", {"follows": follows})

    @method
    def snapshots(self, task: str) -> Flow[list[types.ListedSnapshot]]:
        """The boards of a task that were kept as they were, newest first."""
        return self._all(f"/tasks/{task}/leaderboard/snapshots/")

    @method
    def snapshot(self, task: str, number: int) -> Flow[types.OneSnapshot]:
        """One of them, with its rows."""
        return self._get(f"/tasks/{task}/leaderboard/snapshots/{number}/")
