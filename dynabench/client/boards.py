"""Leaderboards."""

from collections.abc import Mapping
from typing import Any, Literal

from dynabench.client.asking import Asking
from dynabench.client.flow import Flow, method

Weights = Mapping[str, float]


class Boards(Asking):
    """The methods about leaderboards."""

    @method
    def leaderboard(
        self,
        task: str,
        weights: Weights | None = None,
        datasets: Weights | None = None,
        mode: Literal["robust", "classic"] | None = None,
        fork: str | None = None,
        mine: bool = False,
    ) -> Flow[dict[str, Any]]:
        """A task's models in order of their Dynascore.

        weights: of metrics, as `{"accuracy": 4, "throughput": 1}`; datasets: of sets, as
        `{"round-1": 5}`; both 0 to 8, the owner's (or the fork's) unless told. mode: `classic` is
        the published formula. mine: one's own unpublished models too.
        """
        asked = {f"w_{name}": weight for name, weight in (weights or {}).items()}
        asked |= {f"d_{name}": weight for name, weight in (datasets or {}).items()}
        options = {"mode": mode, "fork": fork, "mine": 1 if mine else None}
        return self._get(f"/tasks/{task}/leaderboard/", **asked, **options)

    @method
    def compare(self, a: str, b: str) -> Flow[dict[str, Any]]:
        """Two models of a task, metric by metric, with what of the difference may be chance."""
        task = (yield from self._get(f"/models/{a}/"))["task"]
        found: dict[str, Any] = yield from self._get(
            f"/tasks/{task}/leaderboard/compare/", a=a, b=b
        )
        return found

    @method
    def snapshots(self, task: str) -> Flow[list[dict[str, Any]]]:
        """The boards of a task that were kept as they were, newest first."""
        return self._all(f"/tasks/{task}/leaderboard/snapshots/")

    @method
    def snapshot(self, task: str, number: int) -> Flow[dict[str, Any]]:
        """One of them, with its rows."""
        return self._get(f"/tasks/{task}/leaderboard/snapshots/{number}/")
