"""Rules: tests of a model's behaviour, written in a form.

Three kinds of tests, after Ribeiro et al. 2020, “Beyond Accuracy: Behavioral Testing of NLP Models
with CheckList”: minimum functionality, invariance and direction.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import (
    AdversaryKind,
    Attack,
    Probe,
    Search,
    Setting,
    SettingError,
    read_labelled_line,
    split_lines,
)

SLOT_PATTERN = re.compile(r"\{(\w+)\}")
MAX_CASES = 500
"""The greatest number of texts from one template; of more, as many are drawn at random."""
MAX_PRODUCT = 100_000
SLOT_MESSAGE = gettext_noop("Line %(number)d: write a name, = and values with commas between them.")
NO_RULE_MESSAGE = gettext_noop("Enter at least one test.")
SWAP_MESSAGE = gettext_noop("Line %(number)d: “%(word)s” isn't in the sentence.")
ARROW_MESSAGE = gettext_noop("Line %(number)d: write “word -> other, other” in the last part.")
PRODUCT_MESSAGE = gettext_noop(
    "Line %(number)d: the slots produce more than %(most)d texts. Use fewer values."
)
Slots = Mapping[str, Sequence[str]]


class Rules(AdversaryKind, name="rules"):
    """Fills templates with words, and changes sentences in ways that keep or strengthen a label.

    - Minimum functionality: a template makes texts with a known label.
    - Invariance: another name or number must not change the answer.
    - Direction: a phrase that speaks for the label must not turn the answer away from it.
    """

    title = gettext_noop("Rules")
    summary = gettext_noop("Sends the models texts built from your templates and tests.")
    place = 1
    no_talk_reason = gettext_noop(
        "Rules compare labels, and in a conversation models answer with a text."
    )
    settings = (
        Setting(
            "templates",
            gettext_noop("Templates (minimum functionality)"),
            "lines",
            "",
            gettext_noop("One per line, such as: negative | The {thing} was not {good}."),
        ),
        Setting(
            "slots",
            # Translators: noun: the parts of a template that words fill
            gettext_noop("Slots"),
            "lines",
            "",
            gettext_noop("One per line, such as: good = nice, great, wonderful"),
        ),
        Setting(
            "invariance",
            gettext_noop("Changes that must not matter (invariance)"),
            "lines",
            "",
            gettext_noop("One per line, such as: positive | Anna loved it. | Anna -> Mei, Olu"),
        ),
        Setting(
            "direction",
            gettext_noop("Additions that support the label (direction)"),
            "lines",
            "",
            gettext_noop("One per line, such as: positive | It was fine. | I came back twice."),
        ),
    )

    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> list[Attack]:
        """Return an attack for each test, in random order. Raises SettingError."""
        slots = _read_slots(settings["slots"])
        attacks = []
        for number, line in split_lines("templates", settings["templates"]):
            label, template = read_labelled_line("templates", number, line, labels)
            _check_product(number, template, slots)
            seed = f"{rng.getrandbits(64)}"
            attacks.append(Attack(label, partial(_fill_template, template, slots, seed)))
        for number, line in split_lines("invariance", settings["invariance"]):
            label, text, change = read_labelled_line("invariance", number, line, labels, 3)
            variants = _read_variants(number, text, change)
            attacks.append(Attack(label, partial(_compare_variants, text, variants, "invariance")))
        for number, line in split_lines("direction", settings["direction"]):
            label, text, addition = read_labelled_line("direction", number, line, labels, 3)
            longer_text = f"{text} {addition}"
            attacks.append(
                Attack(label, partial(_compare_variants, text, [longer_text], "direction"))
            )
        if not attacks:
            raise SettingError("templates", NO_RULE_MESSAGE)
        rng.shuffle(attacks)
        return attacks


def _read_slots(text: str) -> dict[str, list[str]]:
    """Return the values of each slot by its name. Raises SettingError."""
    slots: dict[str, list[str]] = {}
    for number, line in split_lines("slots", text):
        name, _, values = line.partition("=")
        words = [word.strip() for word in values.split(",") if word.strip()]
        if not re.fullmatch(r"\w+", name.strip()) or not words:
            raise SettingError("slots", SLOT_MESSAGE, number=number)
        slots[name.strip()] = words
    return slots


def _check_product(number: int, template: str, slots: Slots) -> None:
    """Check that a template makes a number of texts that can be listed. Raises SettingError."""
    text_count = 1
    for name in set(SLOT_PATTERN.findall(template)):
        text_count *= len(slots.get(name, ("",)))
    if text_count > MAX_PRODUCT:
        raise SettingError("templates", PRODUCT_MESSAGE, number=number, most=MAX_PRODUCT)


def _read_variants(number: int, text: str, change: str) -> list[str]:
    """Return the sentence with each of the other words in place of one. Raises SettingError."""
    word, arrow, others = change.partition("->")
    replacements = [other.strip() for other in others.split(",") if other.strip()]
    if not arrow or not word.strip() or not replacements:
        raise SettingError("invariance", ARROW_MESSAGE, number=number)
    if word.strip() not in text:
        raise SettingError("invariance", SWAP_MESSAGE, number=number, word=word.strip())
    return [text.replace(word.strip(), replacement) for replacement in replacements]


def fill_slots(template: str, slots: Slots) -> Iterator[str]:
    """Yield the template with every combination of its slots' values.

    A slot without values stays as it is, and a slot that occurs twice has one value in both places.

    >>> list(fill_slots("{a} or {b}: {a}", {"a": ["x"], "b": ["y", "z"]}))
    ['x or y: x', 'x or z: x']
    """
    names = list(dict.fromkeys(SLOT_PATTERN.findall(template)))
    values = [slots.get(name, [f"{{{name}}}"]) for name in names]
    for chosen_values in itertools.product(*values):
        by_name = dict(zip(names, chosen_values, strict=True))
        yield SLOT_PATTERN.sub(lambda match, by_name=by_name: by_name[match[1]], template)  # type: ignore[misc]


def _fill_template(template: str, slots: Slots, seed: str, context: Mapping[str, Any]) -> Search:
    """Ask about the template's texts. Slots may also be named after fields of the context."""
    context_slots = {name: [str(value)] for name, value in context.items()}
    texts = list(fill_slots(template, {**context_slots, **slots}))
    if len(texts) > MAX_CASES:
        texts = Random(seed).sample(texts, MAX_CASES)
    for text in texts:
        yield Probe(text, f"template: {template}")


def _compare_variants(
    text: str, variants: Sequence[str], step: str, _context: Mapping[str, Any]
) -> Search:
    """Ask about a sentence, and about its variants if the models are right about it.

    If they are wrong about the sentence itself, its variants would show nothing new.
    """
    answer = yield Probe(text, f"{step}: original", is_offered=False)
    if answer.is_fooled:
        return
    for variant in variants:
        yield Probe(variant, f"{step}: {variant}")
