"""The part of the client for reviewers, who select many examples and act on them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Requesting

Action = Literal["accept", "reject", "send-back", "undecide", "tag", "untag"]


class Moderating(Requesting):
    """The client's methods for reviewers."""

    @method
    def review_examples(
        self, task: str, filters: Mapping[str, str] | None = None
    ) -> Flow[list[types.Reviewed]]:
        """Return the examples that match all filters.

        filters: such as `{"outcome": "fooled", "tag": "odd"}`. Fields of the configuration have
        a prefix, as in `input.label`: `input.`, `context.`, `output.` (models' answers),
        `metadata.` (the author's) or `judges.`. Raises Invalid.
        """
        params = dict(filters or {})
        return self._iterate_pages(f"/tasks/{task}/review/examples/", **params)

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
        """Change many examples: the ones with these ids, or all that match the filters.

        reason: shown to the author. tag: the tag to add or remove. Skipped examples are in `left`.
        Raises Invalid, and Refused (`changed`) if other examples match by then.
        """
        body: dict[str, Any] = {"action": action, "reason": reason, "tag": tag}
        if filters is not None:
            address = f"/tasks/{task}/review/matched/"
            # The token names the examples that match now, so that no other one is acted on.
            matched: types.Matched = yield from self._get(address, **filters)
            body |= {"filters": dict(filters), "token": matched["token"]}
        else:
            body["examples"] = list(examples or ())
        bulk_action: types.Act = yield from self._write("POST", f"/tasks/{task}/review/acts/", body)
        return bulk_action

    @method
    def reports(self, task: str, is_open: bool | None = None) -> Flow[list[types.Report]]:
        """Return people's reports on contexts; is_open=None includes resolved ones."""
        return self._iterate_pages(f"/tasks/{task}/reports/", open=is_open)
