"""The methods by which reviewers choose many examples, and act on them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking

Action = Literal["accept", "reject", "send-back", "undecide", "tag", "untag"]


class Moderating(Asking):
    """The methods for reviewers."""

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
    def reports(self, task: str, is_open: bool | None = None) -> Flow[list[types.Report]]:
        """Return what people report about contexts; is_open=None: also resolved reports."""
        return self._all(f"/tasks/{task}/reports/", open=is_open)
