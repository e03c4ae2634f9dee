"""Language model: a chat model writes texts, and learns from the answers of the models to fool.

It fills an archive of cells, each a strategy and a topic, and remembers what worked. In tasks of
conversations it talks to the model to fool (`talks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.archive import Archive, Cell, clean_reply
from dynabench.adversaries.kinds.base import (
    FOUND_TOPICS,
    WEAK_SPOTS,
    AdversaryKind,
    Attack,
    Probe,
    ProbeAnswer,
    Prompt,
    Search,
    Setting,
    SettingError,
    TalkTask,
    split_lines,
)
from dynabench.adversaries.kinds.talks import DEFAULT_GOAL as DEFAULT_TALK_GOAL
from dynabench.adversaries.kinds.talks import DEFAULT_STRATEGIES as DEFAULT_TALK_STRATEGIES
from dynabench.adversaries.kinds.talks import have_talk

DEFAULT_GOAL = (
    "Write one natural English text of one or two sentences. Every careful reader must agree that "
    "its label is “{label}”, but a language model must get it wrong. Do not name the label."
)
DEFAULT_STRATEGIES = """irony or sarcasm
negation, or negation of a negation
two opinions, of which the last one counts
a comparison with something better or worse
facts from which the reader draws the conclusion
rare words or idioms
numbers, dates and amounts
what somebody else said or expected
a change over time
words that usually say the opposite"""
DEFAULT_TOPICS = """food and restaurants
travel and hotels
work and school
health
films, music and books
sports
shopping and repairs
neighbours and family"""
MAX_CELL_LINES = 50
CELLS_MESSAGE = gettext_noop("Enter at most %(most)d lines.")
NO_STRATEGY_MESSAGE = gettext_noop("Enter at least one strategy.")
NO_GOAL_MESSAGE = gettext_noop("Say what the model should write.")
SURE_TEXT = "The model still answered rightly, with a probability of {chance:.0%}: {text}"
TALK_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "goal": {
        "title": gettext_noop("What it should attain"),
        "default": DEFAULT_TALK_GOAL,
        "help": gettext_noop(
            "We put the task’s goal in place of {goal}, and the label for {label}."
        ),
    },
    "strategies": {"default": DEFAULT_TALK_STRATEGIES},
    "topics": {"default": ""},
    "proposals": {"title": gettext_noop("Maximum conversations"), "default": 20},
    "turns": {
        "title": gettext_noop("Turns of each conversation"),
        "default": 4,
        "help": gettext_noop("After each turn, it reads the model’s answer."),
    },
}
"""What differs in the settings in tasks of conversations."""
UNUSABLE_TEXT = "This text can't be used, so write something else: {text}"
COPY_TEXT = "This was no new text, so write something else: {text}"


class LanguageModel(AdversaryKind, name="language_model"):
    """Has a chat model of the task write texts, and tells it how the models answered.

    For each text it may try several times: each time it reads what it wrote before, and how sure
    the models were.
    """

    title = gettext_noop("Language model")
    summary = gettext_noop("One of the task’s chat models writes texts and learns what works.")
    place = 3
    has_found_topics = True
    no_talk_reason = ""
    settings = (
        Setting(
            "model",
            gettext_noop("Model that writes"),
            "model",
            "",
            gettext_noop("One of the task’s chat models. People’s votes decide what it found."),
        ),
        Setting(
            "goal",
            gettext_noop("What it should write"),
            "lines",
            DEFAULT_GOAL,
            gettext_noop("We put the label in place of {label}."),
        ),
        Setting(
            "strategies",
            gettext_noop("Strategies"),
            "lines",
            DEFAULT_STRATEGIES,
            gettext_noop("One per line. It looks for a catch with each strategy and each topic."),
        ),
        Setting("topics", gettext_noop("Topics"), "lines", DEFAULT_TOPICS),
        Setting(
            WEAK_SPOTS,
            gettext_noop("Write about the models’ weak spots, too"),
            "flag",
            True,
            gettext_noop("The writing model reads their words, but no texts of people."),
        ),
        Setting("proposals", gettext_noop("Maximum texts"), "number", 60, low=1, high=5000),
        Setting(
            "turns",
            gettext_noop("Tries at each text"),
            "number",
            3,
            gettext_noop("After each try, it reads how sure the models were."),
            low=1,
            high=8,
        ),
    )

    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> list[Attack]:
        """Return an attack for each text, with the labels in turn. Raises SettingError."""
        # Shared by all attacks of a run, so that each learns from those before.
        archive = _open_archive(settings, rng)
        ordered_labels = list(labels)
        rng.shuffle(ordered_labels)
        attacks = []
        for number in range(settings["proposals"]):
            label = ordered_labels[number % len(ordered_labels)]
            goal = settings["goal"].replace("{label}", label)
            search = partial(write_text, archive, label, goal, settings["turns"])
            attacks.append(Attack(label, search))
        return attacks

    def list_settings(self, *, is_talk: bool) -> tuple[Setting, ...]:
        """Return its settings, with other defaults and words for conversations."""
        if not is_talk:
            return self.settings
        return tuple(replace(one, **TALK_SETTINGS.get(one.name, {})) for one in self.settings)

    def plan_talks(self, settings: Mapping[str, Any], task: TalkTask, rng: Random) -> list[Attack]:
        """Return an attack for each conversation, with the labels in turn. Raises SettingError."""
        archive = _open_archive(settings, rng)
        goal = settings["goal"].replace("{goal}", task.goal)
        attacks = []
        for number in range(settings["proposals"]):
            label = task.labels[number % len(task.labels)]
            own_goal = goal.replace("{label}", label)
            search = partial(have_talk, archive, task, own_goal, settings["turns"], label)
            attacks.append(Attack(label, search))
        return attacks


def _open_archive(settings: Mapping[str, Any], rng: Random) -> Archive:
    """Return an archive with the cells of the settings. Raises SettingError."""
    if not settings["goal"].strip():
        raise SettingError("goal", NO_GOAL_MESSAGE)
    strategies = _read_cell_lines("strategies", settings["strategies"])
    if not strategies:
        raise SettingError("strategies", NO_STRATEGY_MESSAGE)
    topics = _read_cell_lines("topics", settings["topics"])
    found_topics = _read_cell_lines("topics", settings.get(FOUND_TOPICS, ""))
    # Without topics of its own, an adversary goes on to write about anything, too.
    if found_topics:
        topics = [*(topics or [""]), *found_topics]
    return Archive(strategies, topics, rng)


def _read_cell_lines(setting: str, text: str) -> list[str]:
    """Return each line once, in order. Raises SettingError if there are too many."""
    lines = list(dict.fromkeys(line for _number, line in split_lines(setting, text)))
    if len(lines) > MAX_CELL_LINES:
        raise SettingError(setting, CELLS_MESSAGE, most=MAX_CELL_LINES)
    return lines


def write_text(
    archive: Archive, label: str, goal: str, turns: int, context: Mapping[str, Any]
) -> Search:
    """Have the writing model try a text until it fools the models, at most `turns` times."""
    cell = archive.choose_cell()
    remarks: list[str] = []
    for turn in range(1, turns + 1):
        reply = yield _build_prompt(archive, cell, label, goal, context, remarks)
        text = clean_reply(reply.text)
        if not text or archive.is_copy(text):
            remarks.append(COPY_TEXT.format(text=text))
            continue
        archive.remember_text(text)
        answer: ProbeAnswer = yield Probe(text, f"{cell}, {turn}")
        if answer.is_fooled:
            archive.add_find(label, cell, text)
            return
        if not answer.is_answered:
            remarks.append(UNUSABLE_TEXT.format(text=text))
            continue
        # How sure they were tells the writing model which of its tries came closest.
        remarks.append(SURE_TEXT.format(text=text, chance=answer.chance))


def _build_prompt(
    archive: Archive,
    cell: Cell,
    label: str,
    goal: str,
    context: Mapping[str, Any],
    remarks: Sequence[str],
) -> Prompt:
    context_lines = [f"{name}: {value}" for name, value in context.items()]
    return Prompt(
        {
            "goal": goal,
            "strategy": cell.strategy,
            "topic": cell.topic,
            "context": "\n".join(context_lines),
            "worked": "\n".join(archive.list_examples(label, cell)),
            "earlier": "\n".join(remarks),
        }
    )
