"""Program: somebody's own program asks through the API, within the budget of a run."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import AdversaryKind, Attack, Setting


class Program(AdversaryKind, name="program"):
    """Waits for a program that claims a run by the API, asks the models, and ends the run."""

    title = gettext_noop("Program")
    summary = gettext_noop("Your own program asks the models through the API, within a budget.")
    place = 4
    no_talk_reason = gettext_noop(
        "Programs have conversations as people do: with an API token and `conversation_say`."
    )
    is_program = True
    settings = (
        Setting(
            "account",
            gettext_noop("Email address of the account that runs it"),
            "account",
            "",
            gettext_noop("Leave empty if only editors of this task run it."),
        ),
    )

    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> list[Attack]:
        """Return no attacks: the program brings its own."""
        return []
