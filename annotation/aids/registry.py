"""What help with writing must bring: its button, when a task allows it, and what it gives."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.functional import Promise

from annotation.models import Assignment
from core.registry import check_parts
from tasks.config.schema import TaskConfig

AIDS: dict[str, "Aid"] = {}
"""All aids by their names; the modules of `annotation.aids` fill it."""


class Aid:
    """A writing aid that people request by a button of the write page.

    A subclass with a name, `class Gallery(Aid, name="examples")`, registers itself; raises
    TypeError if one of PARTS is missing.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "template", "is_allowed", "give")

    name: ClassVar[str]
    """What its button sends as `want`."""
    label: ClassVar[str | Promise]
    """The words of its button."""
    waiting: ClassVar[str | Promise] = ""
    """What the status line says while it is asked for; empty: nothing."""
    place: ClassVar[int]
    """The place of its button, from 1."""
    template: ClassVar[str]
    """What is shown once it was given; it is included with `work`, the page."""
    answers: ClassVar[tuple[str, ...]] = ()
    """Further values of `want`, which the buttons in its template send."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return
        check_parts(cls, cls.PARTS, "writing aid", name)
        taken_wants = {want for aid in AIDS.values() for want in aid.wants}
        cls.name = name
        aid = cls()
        if repeated := taken_wants.intersection(aid.wants):
            raise TypeError(f"There is a writing aid {', '.join(sorted(repeated))} already.")
        AIDS[name] = aid

    @property
    def wants(self) -> tuple[str, ...]:
        """Return all values of the form field `want` that this aid handles."""
        return (self.name, *self.answers)

    @abstractmethod
    def is_allowed(self, config: TaskConfig) -> bool:
        """Return whether the task's owners allow this aid."""

    @abstractmethod
    def give(self, assignment: Assignment, want: str, typed: Mapping[str, Any]) -> None:
        """Provide and store the help that `want` requests. typed: the text so far.

        Raises Refused and EndpointError, whose reasons the page shows.
        """


def allowed_aids(config: TaskConfig) -> list[Aid]:
    """Return the aids that a task allows, in the order of their buttons."""
    aids = sorted(AIDS.values(), key=lambda aid: aid.place)
    return [aid for aid in aids if aid.is_allowed(config)]


def find_aid(config: TaskConfig, want: str) -> Aid | None:
    """Return the allowed aid that handles the button's value, or None."""
    for aid in allowed_aids(config):
        if want in aid.wants:
            return aid
    return None
