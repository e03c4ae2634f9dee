"""Rules of an owner's own: the measure from which on somebody's work needs a look. Pure.

A rule is a line such as `agreement below chance + 0.2 after 20`. A share counts by the end of its
interval that is kinder to the person, and only once the person has given that many answers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from core.text.words import gettext_noop

Side = Literal["below", "above"]


class Measure(NamedTuple):
    """A measure that rules may name.

    side: where it is a sign of bad work. is_share: 0 to 1, not seconds. of: whose work it is.
    """

    side: Side
    is_share: bool
    of: Literal["judges", "writers"]


MEASURES: Mapping[str, Measure] = {
    "agreement": Measure("below", True, "judges"),
    "gold": Measure("below", True, "judges"),
    "unclear": Measure("above", True, "judges"),
    "unread": Measure("above", True, "judges"),
    "judging-seconds": Measure("below", False, "judges"),
    "near-duplicates": Measure("above", True, "writers"),
    "pasted": Measure("above", True, "writers"),
    "refuted": Measure("above", True, "writers"),
    "writing-seconds": Measure("below", False, "writers"),
}
"""By the names of docs/campaigns.md; docs/statistics.md, “People”, defines each."""
LINE = re.compile(
    r"(?P<measure>[a-z-]+) (?P<side>below|above) (?P<chance>chance \+ )?"
    r"(?P<limit>\d{1,5}(\.\d{1,5})?) after (?P<least>\d{1,5})",
    re.ASCII,
)
FORM = gettext_noop("write a rule such as “agreement below chance + 0.2 after 20”")
UNKNOWN = gettext_noop("there is no such measure; there are: %(measures)s")
SIDE = gettext_noop("%(measure)s is a sign where it is %(side)s")
SHARE = gettext_noop("%(measure)s is a share from 0 to 1")
CHANCE = gettext_noop("%(measure)s has nothing to do with chance")
TWICE = gettext_noop("%(measure)s is there twice")


@dataclass(frozen=True)
class Rule:
    """A rule, one line of the text.

    limit: of a share 0 to 1, else seconds. over_chance: chance is added to it. least: answers
    before it counts.
    """

    measure: str
    limit: float
    least: int
    over_chance: bool = False

    def __str__(self) -> str:
        side, chance = MEASURES[self.measure].side, "chance + " if self.over_chance else ""
        return f"{self.measure} {side} {chance}{self.limit:g} after {self.least}"


class Measured(NamedTuple):
    """A person's measure with its interval, of n answers; seconds have no interval."""

    value: float
    low: float
    high: float
    n: int


class Broken(NamedTuple):
    """A rule that somebody's work breaks, with what speaks for it."""

    measure: str
    limit: float
    value: float
    low: float
    high: float
    n: int


class Wrong(NamedTuple):
    """A problem of a line, counted from 1; `words` fill the message."""

    line: int
    message: str
    words: Mapping[str, Any]


class RuleError(ValueError):
    """The error of a text with lines that are no rules: `problems`, a `Wrong` each."""

    def __init__(self, problems: Sequence[Wrong]) -> None:
        super().__init__(problems)
        self.problems = problems


def read_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a text, one a line, without empty lines. Raises RuleError."""
    rules: dict[str, Rule] = {}
    problems: list[Wrong] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(" ".join(line.split()))
        if not match:
            problems.append(Wrong(number, FORM, {}))
            continue
        for message, words in _find_problems(match, rules):
            problems.append(Wrong(number, message, words))
        name = match["measure"]
        limit, least = float(match["limit"]), int(match["least"])
        # Also a wrong one, so that a second line with this measure is reported, too.
        rules[name] = Rule(name, limit, least, bool(match["chance"]))
    if problems:
        raise RuleError(problems)
    return tuple(rules.values())


def _find_problems(
    match: re.Match[str], rules: Mapping[str, Rule]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield message and words of each problem of a line. rules: those of the lines before it."""
    name = match["measure"]
    measure = MEASURES.get(name)
    if measure is None:
        yield UNKNOWN, {"measures": ", ".join(MEASURES)}
        return
    words = {"measure": name, "side": measure.side}
    if match["side"] != measure.side:
        yield SIDE, words
    # Somebody has written percent.
    if measure.is_share and float(match["limit"]) > 1:
        yield SHARE, words
    if match["chance"] and name != "agreement":
        yield CHANCE, words
    if name in rules:
        yield TWICE, words


def broken(
    rules: Sequence[Rule], measured: Mapping[str, Measured], answers: int
) -> tuple[Broken, ...]:
    """Return the rules that somebody breaks.

    Parameters
    ----------
    rules
        The owner's rules.
    measured
        The person's measures, by name.
    answers
        How many answers an item may have; chance is one of them.

    Notes
    -----
    A share breaks a rule only where its whole interval does. What was not measured, or of fewer
    answers
    than the rule asks for, breaks nothing.
    """
    broken_rules = []
    for rule in rules:
        measure = measured.get(rule.measure)
        # At least one answer, whatever the rule says: without any there is no share.
        if measure is None or measure.n < max(rule.least, 1):
            continue
        chance = 1 / answers if rule.over_chance else 0.0
        limit = rule.limit + chance
        is_below = MEASURES[rule.measure].side == "below"
        # By the end of the interval that is kinder to the person.
        if measure.high < limit if is_below else measure.low > limit:
            broken_rules.append(Broken(rule.measure, limit, *measure))
    return tuple(broken_rules)
