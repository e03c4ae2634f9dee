"""Let a room call functions of a later one, without importing it or naming its tables.

A room may import only earlier ones. If it needs to know something that a later room decides, such
as whether people have confirmed an example, it declares a question:

    @declare_question
    def build_confirmed_condition() -> Q:
        '''Return the condition of examples that people have confirmed.'''
        raise UnansweredQuestion

The later room, which may import the earlier one, answers it when the site starts:

    @build_confirmed_condition.answer
    def _() -> Q:
        return Q(consensus__is_verified=True)

A test checks that each question has an answer, and that no room reaches a later one by the name of
a relation.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class UnansweredQuestion(LookupError):
    """Raised if a question is called that no room has answered."""


class RoomQuestion(Generic[P, T]):
    """A function that an earlier room declares and a later room implements."""

    def __init__(self, function: Callable[P, T]) -> None:
        self._answer: Callable[P, T] | None = None
        self.name = f"{function.__module__}.{function.__qualname__}"
        update_wrapper(self, function)

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
        """Return the implementation's result. Raises UnansweredQuestion if there is none."""
        if self._answer is None:
            raise UnansweredQuestion(self.name)
        return self._answer(*args, **kwargs)


QUESTIONS: list[RoomQuestion[..., Any]] = []
"""All declared questions."""


def declare_question(function: Callable[P, T]) -> RoomQuestion[P, T]:
    """Turn a function into a question and return it. Its docstring describes the answer."""
    question = RoomQuestion(function)
    QUESTIONS.append(question)
    return question
