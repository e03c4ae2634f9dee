"""Questions that a room asks of a later one, without importing it or naming its tables.

A room may read only earlier ones. Where it needs to know something that a later room decides, such
as whether people have confirmed an example, it declares the question:

    @question
    def are_confirmed() -> Q:
        '''Return the condition of examples that people have confirmed.'''
        raise Unanswered

and the later room, which may import the earlier one, answers it when the site starts:

    @are_confirmed.answer
    def _() -> Q:
        return Q(consensus__is_verified=True)

`tests/test_rooms.py` sees that each question has an answer, and that no room reaches a later one by
the name of a relation instead.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Unanswered(LookupError):
    """Raised by the body of a question that no room answers."""


class RoomQuestion(Generic[P, T]):
    """A function that an earlier room declares and a later room implements."""

    def __init__(self, asked: Callable[P, T]) -> None:
        self._answer: Callable[P, T] | None = None
        self.name = f"{asked.__module__}.{asked.__qualname__}"
        update_wrapper(self, asked)

    @property
    def is_answered(self) -> bool:
        """Return whether a later room implements the question."""
        return self._answer is not None

    def answer(self, function: Callable[P, T]) -> Callable[P, T]:
        """Register a function as the implementation. Raises ValueError if there is one already."""
        if self._answer is not None:
            raise ValueError(f"{self.name} has an answer already.")
        self._answer = function
        return function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the implementation's result. Raises Unanswered without an implementation."""
        if self._answer is None:
            raise Unanswered(self.name)
        return self._answer(*args, **kwargs)


QUESTIONS: list[RoomQuestion[..., Any]] = []
"""All questions that were declared."""


def question(function: Callable[P, T]) -> RoomQuestion[P, T]:
    """Declare a question. The docstring of the function describes its result."""
    declared = RoomQuestion(function)
    QUESTIONS.append(declared)
    return declared
