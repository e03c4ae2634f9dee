"""The registry of writing aids, and their base class."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.functional import Promise

from annotation.models import Assignment
from core.registry import check_parts
from tasks.config.schema import TaskConfig

AIDS: dict[str, "Aid"] = {}
"""All aids by name, registered by the modules of `annotation.aids`."""


class Aid:
    """A writing aid that people request with a button on the write page.

    A subclass with a name, `class Gallery(Aid, name="examples")`, registers itself. It raises
    TypeError if one of PARTS is missing.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "template", "is_allowed", "provide_help")

    name: ClassVar[str]
    """The value of the form field `want` that its button sends."""
    label: ClassVar[str | Promise]
    """The text of its button."""
    waiting: ClassVar[str | Promise] = ""
    """The text of the status line while the aid is requested; empty for none."""
    place: ClassVar[int]
    """The position of its button, from 1."""
    template: ClassVar[str]
    """The template that shows the help. It receives the write page as `work`."""
    answers: ClassVar[tuple[str, ...]] = ()
    """Further values of `want`, sent by the buttons in its template."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return
        check_parts(cls, cls.PARTS, "writing aid", name)
        taken_values = {value for aid in AIDS.values() for value in aid.button_values}
        cls.name = name
        aid = cls()
        if repeated := taken_values.intersection(aid.button_values):
            raise TypeError(f"There is a writing aid {', '.join(sorted(repeated))} already.")
        AIDS[name] = aid

    @property
    def button_values(self) -> tuple[str, ...]:
        """Return all values of the form field `want` whose buttons this aid handles."""
        return (self.name, *self.answers)

    @abstractmethod
    def is_allowed(self, config: TaskConfig) -> bool:
        """Return whether the task's owners allow this aid."""

    def is_offered_in_arm(self, config: TaskConfig, arm: str) -> bool:
        """Return whether people get the aid with a text of this arm of a mixed round."""
        return self.is_allowed(config)

    @abstractmethod
    def provide_help(
        self, assignment: Assignment, button_value: str, typed_values: Mapping[str, Any]
    ) -> None:
        """Provide and store the help that a button requests.

        button_value: the value of the form field `want` that the button sent.

        typed_values: the values that the person has typed into the form so far.

        Raises Refused and EndpointError, whose reasons the page shows.
        """


def list_allowed_aids(config: TaskConfig, arm: str = "") -> list[Aid]:
    """Return the aids that a task allows, in the order of their buttons.

    arm: of the text, in a mixed round.
    """
    aids = sorted(AIDS.values(), key=lambda aid: aid.place)
    if arm:
        return [aid for aid in aids if aid.is_offered_in_arm(config, arm)]
    return [aid for aid in aids if aid.is_allowed(config)]


def find_aid(config: TaskConfig, button_value: str, arm: str = "") -> Aid | None:
    """Return the allowed aid that handles the button, or None. arm: see `list_allowed_aids`."""
    for aid in list_allowed_aids(config, arm):
        if button_value in aid.button_values:
            return aid
    return None
