"""The facts about each kind of submission, for all code that depends on the kind.

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
"""The maximum length of a kind's name: the width of its database column."""
TARGET_KIND = "target"
"""The kind of a task's targets, which the site enters itself."""
KINDS: dict[str, "Kind"] = {}
"""All kinds by their names; the modules of `evaluation.submissions.kinds` fill it."""


class JointSettings(NamedTuple):
    """The way in which one model of a kind is submitted to all tasks of a community.

    words: its name in the list of kinds. place: its position in the list. file_for: "model" if each
    task gets the archive itself. Otherwise, the archive has a file for each task or for each set.
    needs_file: False if the files come from the hub.
    """

    words: Words
    place: int
    file_for: Literal["model", "task", "set"] = "model"
    needs_file: bool = True


class Kind:
    """A kind of submission: what differs between kinds after their files were received.

    A subclass with a name, `class Hub(SubmissionKind, name="hub")`, registers the kind. Raises
    TypeError if one of PARTS is missing. Subclasses without a name share code.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("label", "place", "answers")

    name: ClassVar[str]
    label: ClassVar[Words]
    """A short description, for a model's page and the API's documentation."""
    place: ClassVar[int]
    """The position among all kinds, from 1, on pages and in messages."""
    answers: ClassVar[Literal["sandbox", "elsewhere", "file", "target"]]
    """The source of the answers.

    sandbox: the files run here without a network. elsewhere: a remote server is asked, and only
    about sets that may leave the site. file: the file contains the answers to one set, and files of
    the same name are one model. target: the task's target is asked as in rounds.
    """

    has_prompt: ClassVar[bool] = False
    """Whether the model gets messages and writes its answers (`evaluation.runs.chat.settings`)."""
    is_image: ClassVar[bool] = False
    """Whether it is a container image. Other kinds in the sandbox are folders of weights."""
    may_use_gpu: ClassVar[bool] = False
    """Whether the submitter may request a GPU."""
    learns_here: ClassVar[bool] = False
    """Whether it is training data, from which the site trains the model."""
    joint: ClassVar[JointSettings | None] = None
    """How it is submitted to all tasks of a community; None if this is not possible."""

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
        """Return whether it contains answers, so that no model has to run."""
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
        """Return whether a task accepts this kind.

        Tasks that ask for training data accept only training data, and all others only models.
        """
        return self.learns_here == bool(config.training_rows)


class Target(Kind, name=TARGET_KIND):
    """A target of the task. The site creates it; people cannot submit one."""

    label = _("one of the task's own models")
    place = 1000  # after everything that people submit
    answers = "target"

    def fits(self, config: TaskConfig) -> bool:
        """Return False: the site creates the submission when the target is registered."""
        return False


def list_kinds() -> list[Kind]:
    """Return all kinds, ordered by place."""
    return sorted(KINDS.values(), key=lambda kind: kind.place)


def list_kind_names(condition: Callable[[Kind], bool]) -> list[str]:
    """Return the names of the kinds for which a condition is true, ordered by place."""
    return [kind.name for kind in list_kinds() if condition(kind)]


def find_kinds(config: TaskConfig) -> tuple[str, ...]:
    """Return the names of the kinds that a task accepts, ordered by place."""
    return tuple(list_kind_names(lambda kind: kind.fits(config)))


def kind_choices() -> list[tuple[str, Words]]:
    """Return names and labels of all kinds, for the column and the API."""
    return [(kind.name, kind.label) for kind in list_kinds()]


def list_submitted_kinds() -> list[str]:
    """Return the names of the kinds that people submit."""
    return list_kind_names(lambda kind: kind.name != TARGET_KIND)
