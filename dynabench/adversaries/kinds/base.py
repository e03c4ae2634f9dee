"""The base class of kinds of adversaries, and the values that they exchange with a run."""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from core.registry import register_member
from core.text.words import gettext_noop

MAX_NAME_CHARS = 20
"""The width of the database column with a kind's name."""
KINDS: dict[str, "AdversaryKind"] = {}
"""All kinds by name. Importing the modules of `dynabench.adversaries.kinds` fills it."""


@dataclass(frozen=True)
class Probe:
    """A text about which an adversary wants to ask the models.

    step: how it was made, in a few words for the log. is_offered: whether people may get it if it
    fools the models. Texts that only measure, such as a sentence without a word, are not offered.
    """

    text: str
    step: str
    is_offered: bool = True


Role = Literal["text", "turn", "judgement"]
"""What the writing model writes: a text, its next turn in a conversation, or its judgement."""
PROMPT_FIELDS: Mapping[Role, tuple[str, ...]] = {
    "text": ("goal", "strategy", "topic", "context", "worked", "earlier"),
    "turn": ("goal", "strategy", "topic", "context", "worked", "conversation", "earlier"),
    "judgement": ("goal", "context", "conversation", "question", "choices"),
}
"""The fields of a prompt, in the order in which the writing model reads them."""


@dataclass(frozen=True)
class Prompt:
    """A request to the language model that writes for an adversary.

    fields: a text for each of PROMPT_FIELDS of the role.
    """

    fields: Mapping[str, str]
    role: Role = "text"


class Exchange(NamedTuple):
    """A turn of a conversation, with the answer of the model to fool."""

    said: str
    answer: str


@dataclass(frozen=True)
class Turn:
    """The next turn of a conversation with the model to fool. earlier: what was said before.

    step: how it was made, in a few words for the log.
    """

    text: str
    step: str
    earlier: tuple[Exchange, ...]


Judgement = Generator[Prompt, "ProbeAnswer", Mapping[str, Any] | None]
"""It yields prompts and returns what is told of a conversation, or None if nothing is wrong."""


@dataclass(frozen=True)
class Claim:
    """That the last answer of a conversation is one that the task looks for.

    values: what its author tells about it, by field. judge: judges again, because the model is
    asked again before anything counts, and may answer otherwise.
    """

    exchanges: tuple[Exchange, ...]
    values: Mapping[str, Any]
    judge: Callable[[Sequence[Exchange]], Judgement]


@dataclass(frozen=True)
class Blank:
    """A question for words in place of text[start:end], for the site's masked language model.

    count: the most words to find.
    """

    text: str
    start: int
    end: int
    count: int


class ProbeAnswer(NamedTuple):
    """What the models said about a probe, or what a model wrote for a prompt or a blank.

    is_fooled: whether they were fooled, by the round's rule; for a claim, whether it became an
    example. chance: the mean probability that they give to the right label (0-1); 0 or 1 if they
    report none. text: what the writing model wrote, "" if that is of no use; for a turn, the
    model's answer. words: for a blank, the likeliest first. is_answered: False for a probe that
    people may not write, or that the models could not answer.
    """

    is_fooled: bool
    chance: float
    text: str = ""
    words: tuple[str, ...] = ()
    is_answered: bool = True


Step = Probe | Prompt | Blank | Turn | Claim
"""What a search yields. Turns and claims: only in tasks of conversations, and no probes there."""
Search = Generator[Step, ProbeAnswer, None]
"""A search yields probes, and gets the models' answer to each as the value of `yield`.

Kinds with a setting of the kind `model` can yield prompts, too. With a setting that needs the
site's masked language model they can yield blanks, while it is on. A search must depend only on its
arguments and on these answers: a run that continues repeats it with the stored answers.
"""


@dataclass(frozen=True)
class Attack:
    """A search for a text with one right label.

    begin: starts the search about a context, given as its fields.
    """

    label: str
    begin: Callable[[Mapping[str, Any]], Search]


@dataclass(frozen=True)
class TalkField:
    """A field about a conversation that its author fills in. choices: empty for a text."""

    name: str
    title: str
    choices: tuple[str, ...]
    max_chars: int


@dataclass(frozen=True)
class TalkTask:
    """What a task of conversations asks of an author.

    goal: in the words of the task. labels: those of which the server draws one; ("",) without.
    max_turns, max_chars: limits of a conversation and of each turn. is_claimed: whether the author
    decides that an answer is wrong; else a rule does. question, wrong, right: what the author is
    asked about an answer, and the two replies.
    """

    goal: str
    labels: tuple[str, ...]
    max_turns: int
    max_chars: int
    fields: tuple[TalkField, ...]
    is_claimed: bool
    question: str
    wrong: str
    right: str


@dataclass(frozen=True)
class Setting:
    """A setting of a kind, which forms and the API ask for.

    lines: a text with an entry per line. model: the name of one of the task's chat models, which
    writes for the adversary. account: the address of who runs a program. default: also of settings
    that are left out. low, high: the range of a number. needs_masked_model: whether a flag
    can be set only on a site with a masked language model.
    """

    name: str
    title: str
    kind: Literal["lines", "number", "flag", "model", "account"]
    default: Any
    help: str = ""
    low: int = 0
    high: int = 0
    needs_masked_model: bool = False


class SettingError(ValueError):
    """Raised if a setting is wrong; the message says how to correct it.

    setting: its name. message: the untranslated message. values: what replaces its placeholders.
    """

    def __init__(self, setting: str, message: str, **values: Any) -> None:
        super().__init__(message % values)
        self.setting, self.message, self.values = setting, message, values


class AdversaryKind:
    """A kind of adversary.

    A subclass with a name, `class Search(AdversaryKind, name="search")`, registers the kind. Raises
    TypeError if one of PARTS is missing, or the name is taken or too long.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("title", "summary", "place", "settings", "plan_attacks")

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    """What it does, in a sentence for the owners of tasks."""
    place: ClassVar[int]
    """The position among all kinds, from 1."""
    settings: ClassVar[tuple[Setting, ...]]
    """What its form asks for."""
    reads_context: ClassVar[bool] = True
    """Whether its texts can be about a context that the models read with them."""

    has_found_topics: ClassVar[bool] = False
    """Whether it writes about weak spots, too, if its setting WEAK_SPOTS is on."""
    no_talk_reason: ClassVar[str] = gettext_noop("This kind can't have conversations.")
    """Why it can't work in tasks of conversations; "" if it can."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, KINDS, noun="kind of adversary", max_chars=MAX_NAME_CHARS)

    is_program: ClassVar[bool] = False
    """Whether it waits for a program outside the site, and plans no attacks."""
    is_container: ClassVar[bool] = False
    """Whether its program is in a container image that the site runs, so it plans no attacks."""

    @property
    def account_setting(self) -> str:
        """Return the name of the setting with who runs its program; "" if the kind has none."""
        return next((one.name for one in self.settings if one.kind == "account"), "")

    @property
    def model_setting(self) -> str:
        """Return the name of the setting with the model that writes; "" if the kind has none."""
        return next((one.name for one in self.settings if one.kind == "model"), "")

    @abstractmethod
    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> Iterable[Attack]:
        """Return the attacks of a run, in order. Raises SettingError.

        settings: values by name, complete and of the right types. labels: those of the task.
        """

    def list_settings(self, *, is_talk: bool) -> tuple[Setting, ...]:
        """Return what its form asks for. is_talk: whether the task is one of conversations."""
        return self.settings

    def plan_talks(
        self, settings: Mapping[str, Any], task: TalkTask, rng: Random
    ) -> Iterable[Attack]:
        """Return the attacks of a run in a task of conversations, in order. Raises SettingError."""
        return ()


def list_kinds() -> list[AdversaryKind]:
    """Return all kinds, by place and name."""
    return sorted(KINDS.values(), key=lambda kind: (kind.place, kind.name))


WEAK_SPOTS = "weak_spots"
"""The name of the setting that says whether to write about the models' weak spots, too."""
FOUND_TOPICS = "found_topics"
"""The key of lines among the settings of a run: topics that are weak spots of the models."""
LINE_MESSAGE = gettext_noop("Line %(number)d: separate its parts with |, label first.")
LABEL_MESSAGE = gettext_noop("Line %(number)d: “%(label)s” is not a label of this task.")
MAX_LINES = 2000
MANY_LINES_MESSAGE = gettext_noop("Enter at most %(most)d lines.")


def split_lines(setting: str, text: str) -> list[tuple[int, str]]:
    """Return the lines of a setting with their numbers, without empty ones. Raises SettingError."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            lines.append((number, line.strip()))
    if len(lines) > MAX_LINES:
        raise SettingError(setting, MANY_LINES_MESSAGE, most=MAX_LINES)
    return lines


def read_labelled_line(
    setting: str, number: int, line: str, labels: Sequence[str], part_count: int = 2
) -> list[str]:
    """Return the parts of a line such as “positive | We loved it.”, of which the first is a label.

    Raises SettingError if the number of parts or the label is wrong.
    """
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != part_count or not all(parts):
        raise SettingError(setting, LINE_MESSAGE, number=number)
    if parts[0] not in labels:
        raise SettingError(setting, LABEL_MESSAGE, number=number, label=parts[0])
    return parts
