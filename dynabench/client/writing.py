"""The methods that write and judge examples."""

import base64
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Unpack

from dynabench.client import types
from dynabench.client.errors import Refused, TimedOut
from dynabench.client.flow import Flow, Pause, method
from dynabench.client.http import Asking

LONGEST_ASKING = 120.0
"""Seconds after which the server has the targets' answers or has given up."""
PAUSE = 2.0
"""Seconds between two requests for the answers."""


class Writing(Asking):
    """The methods about examples. Those that a program writes are marked and have a split."""

    # Writing: an assignment, then an example about it, in some tasks after a conversation.

    @method
    def assignment(
        self, task: str, want: Literal["current", "context", "goal", "edit"] = "current"
    ) -> Flow[types.Assignment]:
        """Return what to write about and for which goal.

        want: another context, another goal, or an example to be changed as little as possible.
        """
        return self._write("POST", f"/tasks/{task}/assignment/", {"want": want})

    @method
    def annotate(self, assignment_id: int, inputs: Mapping[str, Any]) -> Flow[types.Example]:
        """Write an example; return the targets' answers, and whether they were fooled.

        inputs: values by the names of the task's input fields, without the goal. Waits until the
        targets
        have answered. Raises Invalid, Refused, TimedOut.
        """
        address = f"/assignments/{assignment_id}/examples/"
        # The example itself where the targets answered at once, else the attempt to store it.
        answer = yield from self._write("POST", address, {"inputs": inputs})
        begun = monotonic()
        while answer.get("state") == "asking":
            if monotonic() - begun > LONGEST_ASKING:
                raise TimedOut("The targets have not answered. The text is kept as your draft.")
            yield Pause(PAUSE)
            answer = yield from self._get(f"/attempts/{answer['id']}/")
        if answer.get("failure"):
            raise Refused(answer["failure"])
        example: types.Example = answer.get("example") or answer
        return example

    @method
    def conversation(self, assignment_id: int) -> Flow[types.Conversation]:
        """Return the conversation so far, in a task where one talks to the model."""
        return self._get(f"/assignments/{assignment_id}/conversation/")

    @method
    def say(self, assignment_id: int, text: str) -> Flow[types.Conversation]:
        """Say a turn and wait for the answer; return the conversation, whose last turn it is.

        Mark an answer by its `place`: `annotate(assignment_id, {"talk": place, …})`. Raises
        Invalid,
        Refused (also where the model failed; the same may be said again), TimedOut.
        """
        address = f"/assignments/{assignment_id}/conversation/"
        conversation: types.Conversation = yield from self._write("POST", address, {"text": text})
        begun = monotonic()
        while conversation["is_asking"]:
            if monotonic() - begun > LONGEST_ASKING:
                raise TimedOut("The model has not answered. Ask for the conversation later.")
            yield Pause(PAUSE)
            conversation = yield from self._get(address)
        if conversation["failure"]:
            raise Refused(conversation["failure"])
        return conversation

    @method
    def take_back(
        self, assignment_id: int, turn: int, edit: bool = False
    ) -> Flow[types.Conversation]:
        """Delete one's turn at this place and all after it.

        edit: its text stays as what is `said` next. Raises Refused where there is none.
        """
        body = {"turn": turn, "edit": edit}
        return self._write("POST", f"/assignments/{assignment_id}/conversation/back/", body)

    @method
    def upload_media(
        self, task: str, path: str | Path, alt: str = "", kind: Literal["image", "audio"] = "image"
    ) -> Flow[dict[str, Any]]:
        """Store a picture or recording.

        Return the value that `annotate` takes for a field of its kind.
        alt: what it shows, in words; pictures need it. Raises Invalid with what to change.
        """
        data = base64.b64encode(Path(path).read_bytes()).decode()
        stored = yield from self._write(
            "POST", f"/tasks/{task}/media/", {"kind": kind, "content": data}
        )
        # The file is stored without words: the same picture may show other things elsewhere.
        return {**stored, "alt": alt}

    @method
    def report_context(self, context_id: int, reason: str, comment: str = "") -> Flow[types.Report]:
        """Report what is wrong with a context that one was given. Raises Invalid."""
        body = {"reason": reason, "comment": comment}
        return self._write("POST", f"/contexts/{context_id}/report/", body)

    # One's own examples, and what may still be done about them.

    @method
    def example(self, example_id: str) -> Flow[types.JudgedExample]:
        """Return an example, as one may see it."""
        return self._get(f"/examples/{example_id}/")

    @method
    def my_examples(self) -> Flow[list[types.JudgedExample]]:
        """Return one's examples, and what was decided about them."""
        return self._all("/me/examples/")

    @method
    def mend(self, example_id: str) -> Flow[types.Assignment]:
        """Take the context of one's example, which a reviewer sent back, again.

        What `annotate` stores next takes the example's place. Raises Refused, PermissionDenied.
        """
        return self._write("POST", f"/examples/{example_id}/mend/")

    @method
    def retract(self, example_id: str) -> Flow[types.Example]:
        """Retract one's example."""
        return self._write("POST", f"/examples/{example_id}/retract/")

    # Judging: an example is reserved, then judged or skipped.

    @method
    def next_to_judge(self, task: str) -> Flow[types.Item | None]:
        """Return an example of somebody else to judge, without its author's answer.

        None: there is none.
        It is reserved for a quarter of an hour.
        """
        return self._write("POST", f"/tasks/{task}/judging/next/")

    @method
    def validate(
        self, example_id: str, vote: str, **flag: Unpack[types.Flag]
    ) -> Flow[types.OwnValidation]:
        """Judge an example that `next_to_judge` returned.

        vote: one of those in its `choices`. A flag also takes a `flag_reason` of its
        `flag_reasons`, and
        optionally a `comment`.
        """
        body = {"vote": vote, **flag}
        return self._write("POST", f"/examples/{example_id}/validations/", body)

    @method
    def undo_validation(self, example_id: str) -> Flow[None]:
        """Delete one's vote, within ten minutes."""
        return self._write("DELETE", f"/examples/{example_id}/validations/mine/")

    @method
    def skip(self, example_id: str) -> Flow[None]:
        """Leave an example that `next_to_judge` returned to others."""
        return self._write("POST", f"/examples/{example_id}/skip/")
