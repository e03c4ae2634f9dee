"""The facts about each kind of submission, for every room and folder that asks by kind.

`evaluation.submissions.kinds` has a file for each kind, with its form and how it is received.
"""

from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.registry import register_member
from tasks.config.schema import TaskConfig

Words = str | Promise
MAX_NAME_CHARS = 11
"""In a kind's name: the width of the column that holds it."""
TARGET = "target"
"""The kind of a task's targets, which the site enters itself."""
KINDS: dict[str, "Kind"] = {}
"""All kinds by their names; the modules of `evaluation.submissions.kinds` fill it."""


class Joint(NamedTuple):
    """How one model of a kind is submitted to all tasks of a community.

    words: in the list of kinds. place: there. file_for: whether each task gets the archive itself,
    or the archive has a file for each task or for each set. needs_file: False where the hub has it.
    """

    words: Words
    place: int
    file_for: Literal["model", "task", "set"] = "model"
    needs_file: bool = True


class Kind:
    """A kind of submission: what differs from kind to kind after its files were received.

    A subclass with a name, `class Hub(SubmissionKind, name="hub")`, registers the kind; TypeError
    when one of PARTS is missing. Subclasses without a name share code.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "answers")

    name: ClassVar[str]
    label: ClassVar[Words]
    """What it is, in a few words: on a model's page and in the API's description."""
    place: ClassVar[int]
    """Its place among all kinds, from 1, on pages and in messages."""
    answers: ClassVar[Literal["sandbox", "elsewhere", "file", "target"]]
    """Where its answers come from.

    sandbox: its files run here without a network. elsewhere: a server of others is asked, and only
    about sets that may leave the site. file: it holds the answers to one set, and files of the same
    name are one model. target: the task's target is asked as in rounds.
    """

    has_prompt: ClassVar[bool] = False
    """It gets messages and writes its answers (`evaluation.runs.chat.settings`)."""
    is_image: ClassVar[bool] = False
    """It is an image of a container; other kinds in the sandbox are folders of weights."""
    may_use_gpu: ClassVar[bool] = False
    """Its submitter may ask for a GPU."""
    learns_here: ClassVar[bool] = False
    """It is training data, from which the site makes the model."""
    joint: ClassVar[Joint | None] = None
    """How it is submitted to all tasks of a community; None: it is not."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, KINDS, noun="kind of submission", max_chars=MAX_NAME_CHARS)

    @property
    def runs_in_sandbox(self) -> bool:
        """Return whether its files run in the sandbox."""
        return self.answers == "sandbox"

    @property
    def is_remote(self) -> bool:
        """Return whether the examples leave this site."""
        return self.answers == "elsewhere"

    @property
    def is_file_of_answers(self) -> bool:
        """Return whether it holds answers, so that nothing of it is asked."""
        return self.answers == "file"

    @property
    def costs_per_call(self) -> bool:
        """Return whether its owner pays for each call, up to a cap."""
        return self.is_remote and self.has_prompt

    @property
    def writes_here(self) -> bool:
        """Return whether it is a language model that runs in the sandbox."""
        return self.runs_in_sandbox and self.has_prompt

    def fits(self, config: TaskConfig) -> bool:
        """Return whether a task takes it: models, unless the task asks for training data."""
        return self.learns_here == bool(config.training_rows)


class Target(Kind, name=TARGET):
    """A target of the task. The site enters it, and nobody submits one."""

    label = _("a target of the task")
    place = 1000  # after all that people submit
    answers = "target"

    def fits(self, config: TaskConfig) -> bool:
        """Return False: it is entered when the target is registered."""
        return False


def all_kinds() -> list[Kind]:
    """Return all kinds in their places."""
    return sorted(KINDS.values(), key=lambda kind: kind.place)


def kind_names(condition: Callable[[Kind], bool]) -> list[str]:
    """Return the names of the kinds of which a condition holds, in their places."""
    return [kind.name for kind in all_kinds() if condition(kind)]


def kinds_of(config: TaskConfig) -> tuple[str, ...]:
    """Return the names of the kinds that a task takes, in their places."""
    return tuple(kind_names(lambda kind: kind.fits(config)))


def kind_choices() -> list[tuple[str, Words]]:
    """Return names and labels of all kinds, for the column and the API."""
    return [(kind.name, kind.label) for kind in all_kinds()]


def submitted_kinds() -> list[str]:
    """Return the names of the kinds that people submit."""
    return kind_names(lambda kind: kind.name != TARGET)
