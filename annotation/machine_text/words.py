"""What pages call the conditions of writing and the signals of machine text."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from annotation.machine_text.selectors import MachineShareReport
from annotation.rules.writing_conditions import ASK, HIDDEN, NONE, PASTE_OFF

CONDITION_WORDS: dict[str, Any] = {
    # Translators: a text was written without any check for machine-written text
    NONE: _("No check"),
    # Translators: a text was written while pasting was switched off
    PASTE_OFF: _("Pasting off"),
    # Translators: the author was asked afterwards whether a model wrote any of the text
    ASK: _("Asked afterwards"),
    # Translators: the page had an instruction that only programs read
    HIDDEN: _("Instruction for programs"),
}
SIGNAL_WORDS: dict[str, Any] = {
    "pasted": _("More than half was pasted"),
    "fast": _("Faster than people type"),
    "admitted": _("The author says that a model was used"),
    "followed": _("The text follows the instruction for programs"),
}


class SignalLine(NamedTuple):
    """A row of the table of signals."""

    condition: Any
    signal: Any
    texts: int
    share: float


def list_signal_lines(report: MachineShareReport) -> list[SignalLine]:
    """Return how often each signal fired, with the words that pages use."""
    return [
        SignalLine(
            CONDITION_WORDS[row["condition"]],
            SIGNAL_WORDS[row["signal"]],
            row["texts"],
            row["share"],
        )
        for row in report["signals"]
    ]
