"""The part of the client that writes examples and waits for the targets."""

import base64
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from dynabench.client import types
from dynabench.client.errors import Refused, TimedOut
from dynabench.client.flow import Flow, Pause, method
from dynabench.client.http import Requesting

MAX_ANSWER_SECONDS = 120.0
"""The seconds after which the server has the targets' answers or has given up."""
PAUSE_SECONDS = 2.0
"""The seconds between two requests for the answers."""


class Writing(Requesting):
    """The client's methods for examples.

    Examples written by programs are marked, and datasets have a separate split for them.
    """

    @method
    def annotate(self, assignment_id: int, inputs: Mapping[str, Any]) -> Flow[types.Example]:
        """Write an example; return the targets' answers, and whether they were fooled.

        inputs: values by the names of the task's input fields, without the goal. Waits for the
        targets' answers. Raises Invalid, Refused, TimedOut.
        """
        address = f"/assignments/{assignment_id}/examples/"
        # The example itself where the targets answered at once, else the attempt to store it.
        answer = yield from self._write("POST", address, {"inputs": inputs})
        started_at = monotonic()
        while answer.get("state") == "asking":
            if monotonic() - started_at > MAX_ANSWER_SECONDS:
                raise TimedOut("The targets did not respond. Your text is saved as a draft.")
            yield Pause(PAUSE_SECONDS)
            answer = yield from self._get(f"/attempts/{answer['id']}/")
        if answer.get("failure"):
            raise Refused(answer["failure"])
        example: types.Example = answer.get("example") or answer
        return example

    @method
    def say(self, assignment_id: int, text: str) -> Flow[types.Conversation]:
        """Send a message and return the conversation, which ends with the reply.

        To submit an example about a reply, pass the reply's `place`:
        `annotate(assignment_id, {"talk": place, …})`. Raises Invalid, Refused (also if the
        model failed, in which case you may send the message again), TimedOut.
        """
        address = f"/assignments/{assignment_id}/conversation/"
        conversation: types.Conversation = yield from self._write("POST", address, {"text": text})
        started_at = monotonic()
        while conversation["is_asking"]:
            if monotonic() - started_at > MAX_ANSWER_SECONDS:
                raise TimedOut("The model did not respond. Fetch the conversation again later.")
            yield Pause(PAUSE_SECONDS)
            conversation = yield from self._get(address)
        if conversation["failure"]:
            raise Refused(conversation["failure"])
        return conversation

    @method
    def upload_media(
        self, task: str, path: str | Path, alt: str = "", kind: Literal["image", "audio"] = "image"
    ) -> Flow[dict[str, Any]]:
        """Store a picture or recording; return the value that `annotate` takes for such a field.

        alt: a description, which pictures need. Raises Invalid with what to change.
        """
        data = base64.b64encode(Path(path).read_bytes()).decode()
        media_value = yield from self._write(
            "POST", f"/tasks/{task}/media/", {"kind": kind, "content": data}
        )
        # The file is stored without words: the same picture may show other things elsewhere.
        return {**media_value, "alt": alt}
