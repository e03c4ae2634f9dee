"""Writing and judging examples by program."""

import time
from collections.abc import Mapping
from typing import Any, Literal

from dynabench.client.asking import Asking
from dynabench.client.errors import TimedOut
from dynabench.client.flow import Flow, Pause, method

LONGEST_ASKING = 120.0
"""Seconds in which the targets have answered or were given up."""


class Writing(Asking):
    """The methods about examples. What a program writes is marked so and kept in its own split."""

    @method
    def assignment(
        self, task: str, want: Literal["current", "context", "goal"] = "current"
    ) -> Flow[dict[str, Any]]:
        """What to write about and for which goal: `id`, `context`, `goal` …

        want: another context, or another goal, instead of the current one.
        """
        return self._write("POST", f"/tasks/{task}/assignment/", {"want": want})

    @method
    def annotate(self, assignment_id: int, inputs: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        """Write an example: what the targets answered, and whether they were fooled.

        inputs: the values of the task's input components by their names. Waits until the targets
        have answered. Raises Invalid, Refused, TimedOut.
        """
        address = f"/assignments/{assignment_id}/examples/"
        told = {"inputs": inputs}
        found: dict[str, Any] = yield from self._write("POST", address, told)
        begun, pause = time.monotonic(), 0.5
        while found.get("state") == "asking":
            if time.monotonic() - begun > LONGEST_ASKING:
                raise TimedOut("The targets have not answered yet; ask for the example later.")
            yield Pause(pause)
            pause = min(pause * 1.5, 5)
            found = yield from self._get(f"/attempts/{found['id']}/")
        return found

    @method
    def example(self, example_id: str) -> Flow[dict[str, Any]]:
        """An example, as one may see it."""
        return self._get(f"/examples/{example_id}/")

    @method
    def my_examples(self) -> Flow[list[dict[str, Any]]]:
        """What one has written."""
        return self._all("/me/examples/")

    @method
    def retract(self, example_id: str) -> Flow[dict[str, Any]]:
        """Take an example of one's own back."""
        return self._write("POST", f"/examples/{example_id}/retract/")

    @method
    def next_to_judge(self, task: str) -> Flow[dict[str, Any] | None]:
        """An example of somebody else to judge, without what its author said; None: there is none.

        It is held for a quarter of an hour.
        """
        return self._write("POST", f"/tasks/{task}/judging/next/")

    @method
    def validate(self, /, example_id: str, vote: str, **told: Any) -> Flow[dict[str, Any]]:
        """Judge the example that was handed out."""
        body = {"vote": vote, **told}
        return self._write("POST", f"/examples/{example_id}/validations/", body)

    @method
    def skip(self, example_id: str) -> Flow[Any]:
        """Leave the example that was handed out to others."""
        return self._write("POST", f"/examples/{example_id}/skip/")
