"""Container: somebody's own program in an image, which the site runs without a network."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import AdversaryKind, Attack, Setting


class Container(AdversaryKind, name="container"):
    """Runs a program that asks by lines of JSON (`container_lines`), within the budget of a run."""

    title = gettext_noop("Container")
    summary = gettext_noop(
        "Your own program in a container image, which we run without a network. It asks the models "
        "through us, within a budget."
    )
    place = 5
    is_container = True
    settings = (
        Setting(
            "account",
            gettext_noop("Email address of the account that brings the image"),
            "account",
            "",
            gettext_noop("Leave empty if only editors of this task bring it."),
        ),
    )

    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> list[Attack]:
        """Return no attacks: the program brings its own."""
        return []
