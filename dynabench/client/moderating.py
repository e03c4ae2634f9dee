"""What reviewers and owners say of examples and read of people, and how votes decide."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

Kind = Literal["all", "no-consensus", "split", "flagged", "sample", "owner"]

Action = Literal["accept", "reject", "send-back", "undecide", "tag", "untag"]


class Moderating(Asking):
    """The methods for reviewers."""

    @method
    def review(
        self, task: str, kind: Kind = "all", round: int | None = None
    ) -> Flow[list[types.ReviewItem]]:
        """What an expert should look at: a sample of what is judged, and all disagreements."""
        return self._all(f"/tasks/{task}/review/", kind=kind, round=round)

    @method
    def review_examples(
        self, task: str, filters: Mapping[str, str] | None = None
    ) -> Flow[list[types.Reviewed]]:
        """The examples that all filters let through: `{"outcome": "fooled", "tag": "odd"}`.

        A field of the configuration is `input.label`; also `context.`, `output.` (what models
        said), `metadata.` (of the author) and `judges.`. Raises Invalid.
        """
        return self._all(f"/tasks/{task}/review/examples/", **(filters or {}))

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

        reason: its author reads it; tag: to add or remove. What is left alone is in `left`.
        Raises Invalid, Refused (`changed`) where other examples match meanwhile.
        """
        body: dict[str, Any] = {"action": action, "reason": reason, "tag": tag}
        if filters is not None:
            address = f"/tasks/{task}/review/matched/"
            found: types.Matched = yield from self._get(address, **filters)
            body |= {"filters": dict(filters), "token": found["token"]}
        else:
            body["examples"] = list(examples or ())
        done: types.Act = yield from self._write("POST", f"/tasks/{task}/review/acts/", body)
        return done

    @method
    def undo_act(self, task: str, run: str) -> Flow[types.Act]:
        """Take back one's own action by its `run`, but for what was decided since."""
        return self._write("DELETE", f"/tasks/{task}/review/acts/{run}/")

    @method
    def decide(self, example_id: str, answer: str, reason: str = "") -> Flow[types.Decision]:
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
    def decisions(self, example_id: str) -> Flow[list[types.PastDecision]]:
        """Every decision about an example, withdrawn ones too, the newest first."""
        return self._all(f"/examples/{example_id}/decisions/")

    @method
    def gold(self, task: str) -> Flow[list[types.Gold]]:
        """The examples by which validators are checked."""
        return self._all(f"/tasks/{task}/gold/")

    @method
    def mark_gold(self, example_id: str, explanation: str = "") -> Flow[types.Gold]:
        """Check validators by a decided example. Who errs reads the explanation. Raises Refused."""
        body = {"explanation": explanation}
        return self._write("PUT", f"/examples/{example_id}/gold/", body)

    @method
    def unmark_gold(self, example_id: str) -> Flow[None]:
        """Make it an example like all others; the answers to it are deleted."""
        return self._write("DELETE", f"/examples/{example_id}/gold/")

    @method
    def withdraw_example(self, example_id: str, reason: str) -> Flow[None]:
        """Take an example out of all numbers and later releases. The reason stays in the log."""
        return self._write("POST", f"/examples/{example_id}/withdraw/", {"reason": reason})

    @method
    def reports(self, task: str, is_open: bool | None = None) -> Flow[list[types.Report]]:
        """What people say is wrong with contexts; None: resolved ones too."""
        return self._all(f"/tasks/{task}/reports/", open=is_open)

    @method
    def resolve_report(self, report_id: int) -> Flow[types.Report]:
        """Mark a report as dealt with."""
        return self._write("POST", f"/reports/{report_id}/resolve/")

    @method
    def authors(self, task: str, round: int | None = None) -> Flow[list[types.Author]]:
        """Who writes, by pseudonym; those first whose work needs a look."""
        return self._get(f"/tasks/{task}/authors/", round=round)

    @method
    def validators(self, task: str, round: int | None = None) -> Flow[list[types.Validator]]:
        """Who judges, by pseudonym; those first whose work needs a look."""
        return self._get(f"/tasks/{task}/validators/", round=round)

    @method
    def activity(self, task: str, round: int) -> Flow[types.Activity]:
        """What people do in a round just now; for members."""
        return self._get(f"/tasks/{task}/rounds/{round}/activity/")

    @method
    def second_opinion(self, task: str, round: int) -> Flow[types.SecondOpinion]:
        """Where a model of the votes says otherwise, and whom it believes least."""
        return self._get(f"/tasks/{task}/rounds/{round}/second-opinion/")

    @method
    def policy(self, task: str, round: int) -> Flow[types.Policy]:
        """How the votes of a round decide; for editors."""
        return self._get(f"/tasks/{task}/rounds/{round}/policy/")

    @method
    def change_policy(
        self, task: str, round: int, **policy: Unpack[types.NewPolicy]
    ) -> Flow[types.ChangedPolicy]:
        """Let the votes decide otherwise, such as `rule="at-least", needed=3, of=5`.

        All votes are counted again. With `dry_run=True` it only tells what would change, in
        `preview`. Raises Invalid, Refused (`too_large` for a preview).
        """
        return self._write("PUT", f"/tasks/{task}/rounds/{round}/policy/", policy)
