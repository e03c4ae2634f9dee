"""Practice conversations: stored only in the person's session, one at a time."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from annotation.attempts.conversation_services import (
    build_opening_turns,
    check_next_turn,
    list_spoken_turns,
    strip_turns,
)
from annotation.models import Conversation
from annotation.refusals import StaleForm
from tasks.config.components import Component

SESSION_KEY = "practice-talk"
Turns = list[dict[str, Any]]


@dataclass
class Talk:
    """A practice conversation about one context, for one goal.

    url: the address of the practice page. place: the index of the context among the practice
    contexts. said, failure: as in `Conversation`.
    """

    url: str
    place: int
    goal: str
    turns: Turns = field(default_factory=list)
    said: str = ""
    failure: str = ""

    @property
    def row(self) -> Conversation:
        """Return the conversation as an unsaved row, for the page."""
        return Conversation(turns=self.turns, said=self.said, failure=self.failure)

    def store_in_session(self, request: HttpRequest) -> None:
        """Store the conversation in the session; remove it if it has no turn."""
        # One turn is only the system message with which a conversation opens.
        if self.said or len(self.turns) > 1:
            request.session[SESSION_KEY] = asdict(self)
        else:
            request.session.pop(SESSION_KEY, None)

    def check_turn(self, component: Component, text: str, turn_index: int) -> None:
        """Check that the text may be the next turn. Raises StaleForm, InvalidTurn, CapReached."""
        if turn_index != len(self.turns):
            raise StaleForm(
                _("The conversation continued in another window, so this message wasn't sent.")
            )
        check_next_turn(self.turns, component, text)

    def set_next_turn(self, component: Component, text: str) -> Turns:
        """Set the person's next turn; return all turns for the model."""
        self.turns = self.turns or build_opening_turns(component)
        self.said, self.failure = text, ""
        return strip_turns([*self.turns, {"role": "user", "text": text}])

    def add_answer(self, answer: str) -> None:
        """Append the person's turn with the model's answer."""
        own_turn = {"role": "user", "text": self.said}
        self.turns, self.said = [*self.turns, own_turn, {"role": "assistant", "text": answer}], ""

    def take_back_turn(self, turn_index: int, keeps_text: bool) -> None:
        """Take back a turn of the person and all later ones.

        keeps_text: whether the turn's text stays for editing. Raises StaleForm if there is no such
        turn.
        """
        chosen_turn = dict(enumerate(self.turns)).get(turn_index)
        if chosen_turn is None or chosen_turn["role"] != "user":
            raise StaleForm(_("This turn no longer exists. Reload the page."))
        self.turns, self.failure = self.turns[:turn_index], ""
        self.said = chosen_turn["text"] if keeps_text else ""

    def find_answer_after(self, turns: Sequence[Any]) -> str:
        """Return the model's answer that follows these turns. Raises StaleForm."""
        spoken = list_spoken_turns(self.turns)
        if spoken[: len(turns)] != [*turns] or len(spoken) == len(turns):
            raise StaleForm(
                _("The conversation continued in another window. Mark the answer again.")
            )
        return str(spoken[len(turns)]["text"])

    @property
    def opening_turns(self) -> Turns:
        """Return the system messages."""
        return [turn for turn in self.turns if turn["role"] == "system"]


def load_talk(request: HttpRequest, url: str) -> Talk | None:
    """Return the session's conversation for this practice page, or None."""
    stored_talk = request.session.get(SESSION_KEY)
    # What was begun with another model does not go on with this one.
    return Talk(**stored_talk) if stored_talk and stored_talk["url"] == url else None
