"""What moderators and owners say of examples, and how votes decide."""

from typing import Literal, Unpack

from dynabench.client.asking import Asking
from dynabench.client.flow import Flow, method
from dynabench.client.types import ChangedPolicy, Decision, NewPolicy, Policy, ReviewItem

Kind = Literal["all", "no-consensus", "split", "flagged", "sample", "owner"]


class Moderating(Asking):
    """The methods for moderators."""

    @method
    def review(
        self, task: str, kind: Kind = "all", round: int | None = None
    ) -> Flow[list[ReviewItem]]:
        """What an expert should look at: a sample of what is judged, and all disagreements."""
        return self._all(f"/tasks/{task}/review/", kind=kind, round=round)

    @method
    def decide(self, example_id: str, answer: str, reason: str = "") -> Flow[Decision]:
        """Decide over all votes.

        answer: `label:…` or `verdict:…`; reason: the author reads it. Raises Invalid, Refused.
        """
        body = {"answer": answer, "reason": reason}
        return self._write("POST", f"/examples/{example_id}/decision/", body)

    @method
    def withdraw_decision(self, example_id: str) -> Flow[None]:
        """Let the votes decide again. Raises Refused."""
        return self._write("DELETE", f"/examples/{example_id}/decision/")

    @method
    def policy(self, task: str, round: int) -> Flow[Policy]:
        """How the votes of a round decide; for editors."""
        return self._get(f"/tasks/{task}/rounds/{round}/policy/")

    @method
    def change_policy(
        self, task: str, round: int, **policy: Unpack[NewPolicy]
    ) -> Flow[ChangedPolicy]:
        """Let the votes decide otherwise, such as `rule="at-least", needed=3, of=5`.

        All votes are counted again. With `dry_run=True` it only tells what would change, in
        `preview`. Raises Invalid, Refused (`too_large` for a preview).
        """
        return self._write("PUT", f"/tasks/{task}/rounds/{round}/policy/", policy)
