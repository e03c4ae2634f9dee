"""The methods by which reviewers and owners decide about examples and read about people."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

Kind = Literal["all", "no-consensus", "split", "flagged", "sample", "owner"]

Action = Literal["accept", "reject", "send-back", "undecide", "tag", "untag"]


class Moderating(Asking):
    """The methods for reviewers."""

    # Reviewing: which examples need a look, and decisions about one or many of them.

    @method
    def review(
        self, task: str, kind: Kind = "all", round: int | None = None
    ) -> Flow[list[types.ReviewItem]]:
        """Return what an expert should look at: a sample of what is judged, all disagreements."""
        return self._all(f"/tasks/{task}/review/", kind=kind, round=round)

    @method
    def review_examples(
        self, task: str, filters: Mapping[str, str] | None = None
    ) -> Flow[list[types.Reviewed]]:
        """Return the examples that match all filters.

        filters: such as `{"outcome": "fooled", "tag": "odd"}`. A field of the configuration is
        `input.label`; also `context.`, `output.` (what models said), `metadata.` (of the author)
        and
        `judges.`. Raises Invalid.
        """
        params = dict(filters or {})
        return self._all(f"/tasks/{task}/review/examples/", **params)

    @method
    def act_on_examples(
        self,
        task: str,
        action: Action,
        examples: Sequence[str] | None = None,
        filters: Mapping[str, str] | None = None,
        reason: str = "",
        tag: str = "",
    ) -> Flow[types.Act]:
        """Do something with many examples: those with these ids, or all that match the filters.

        reason: the author reads it; tag: to add or remove. Examples that were left out are in
        `left`.
        Raises Invalid, Refused (`changed`) where other examples match by then.
        """
        body: dict[str, Any] = {"action": action, "reason": reason, "tag": tag}
        if filters is not None:
            address = f"/tasks/{task}/review/matched/"
            # The token names the examples that match now, so that no other one is acted on.
            matched: types.Matched = yield from self._get(address, **filters)
            body |= {"filters": dict(filters), "token": matched["token"]}
        else:
            body["examples"] = list(examples or ())
        act: types.Act = yield from self._write("POST", f"/tasks/{task}/review/acts/", body)
        return act

    @method
    def undo_act(self, task: str, run: str) -> Flow[types.Act]:
        """Undo one's own action by its `run`, except where something was decided since."""
        return self._write("DELETE", f"/tasks/{task}/review/acts/{run}/")

    @method
    def decide(self, example_id: str, answer: str, reason: str = "") -> Flow[types.Decision]:
        """Decide an example; the decision overrides the votes.

        answer: `label:…` or `verdict:…`; reason: the author reads it. Raises Invalid, Refused.
        """
        body = {"answer": answer, "reason": reason}
        return self._write("POST", f"/examples/{example_id}/decision/", body)

    @method
    def withdraw_decision(self, example_id: str) -> Flow[None]:
        """Withdraw a decision, so that the votes decide again. Raises Refused."""
        return self._write("DELETE", f"/examples/{example_id}/decision/")

    @method
    def decisions(self, example_id: str) -> Flow[list[types.PastDecision]]:
        """Return every decision about an example, also withdrawn ones, the newest first."""
        return self._all(f"/examples/{example_id}/decisions/")

    # Gold items, withdrawn examples and reports.

    @method
    def gold(self, task: str) -> Flow[list[types.Gold]]:
        """Return the examples by which validators are checked."""
        return self._all(f"/tasks/{task}/gold/")

    @method
    def mark_gold(self, example_id: str, explanation: str = "") -> Flow[types.Gold]:
        """Check validators by a decided example; those who get it wrong read the explanation.

        Raises Refused.
        """
        body = {"explanation": explanation}
        return self._write("PUT", f"/examples/{example_id}/gold/", body)

    @method
    def unmark_gold(self, example_id: str) -> Flow[None]:
        """Make a gold item an example like all others; the answers to it are deleted."""
        return self._write("DELETE", f"/examples/{example_id}/gold/")

    @method
    def withdraw_example(self, example_id: str, reason: str) -> Flow[None]:
        """Withdraw an example from all numbers and later releases; the reason stays in the log."""
        return self._write("POST", f"/examples/{example_id}/withdraw/", {"reason": reason})

    @method
    def reports(self, task: str, is_open: bool | None = None) -> Flow[list[types.Report]]:
        """Return what people report about contexts; is_open=None: also resolved reports."""
        return self._all(f"/tasks/{task}/reports/", open=is_open)

    @method
    def resolve_report(self, report_id: int) -> Flow[types.Report]:
        """Mark a report as resolved."""
        return self._write("POST", f"/reports/{report_id}/resolve/")

    # People by pseudonym, what they do now, and how their votes decide.

    @method
    def authors(self, task: str, round: int | None = None) -> Flow[list[types.Author]]:
        """Return the people who write, by pseudonym; first those whose work needs a look."""
        return self._get(f"/tasks/{task}/authors/", round=round)

    @method
    def validators(self, task: str, round: int | None = None) -> Flow[list[types.Validator]]:
        """Return the people who judge, by pseudonym; first those whose work needs a look."""
        return self._get(f"/tasks/{task}/validators/", round=round)

    @method
    def activity(self, task: str, round: int) -> Flow[types.Activity]:
        """Return what people do in a round just now; for members."""
        return self._get(f"/tasks/{task}/rounds/{round}/activity/")

    @method
    def second_opinion(self, task: str, round: int) -> Flow[types.SecondOpinion]:
        """Return where a model of the votes disagrees with the consensus.

        Also the judges whom it trusts least.
        """
        return self._get(f"/tasks/{task}/rounds/{round}/second-opinion/")

    @method
    def policy(self, task: str, round: int) -> Flow[types.Policy]:
        """Return how the votes of a round decide; for editors."""
        return self._get(f"/tasks/{task}/rounds/{round}/policy/")

    @method
    def change_policy(
        self, task: str, round: int, **policy: Unpack[types.NewPolicy]
    ) -> Flow[types.ChangedPolicy]:
        """Change how the votes of a round decide, such as `rule="at-least", needed=3, of=5`.

        All votes are counted again. With `dry_run=True` only the answer's `preview` says what would
        change.
        Raises Invalid, Refused (`too_large` for a preview).
        """
        return self._write("PUT", f"/tasks/{task}/rounds/{round}/policy/", policy)
