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
    """A measure that rules may use.

    side: the side of the limit that indicates bad work. is_share: whether values are shares
    from 0 to 1; otherwise seconds. of: the role whose work is measured.
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
RULE_PATTERN = re.compile(
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
    """An owner's rule, one line of the text.

    limit: a share from 0 to 1, or seconds. over_chance: whether chance is added to the
    limit. least: minimum number of answers for the rule to apply.
    """

    measure: str
    limit: float
    least: int
    over_chance: bool = False

    def __str__(self) -> str:
        side, chance = MEASURES[self.measure].side, "chance + " if self.over_chance else ""
        return f"{self.measure} {side} {chance}{self.limit:g} after {self.least}"


class MeasuredValue(NamedTuple):
    """A person's value of a measure over n answers, with its interval.

    For seconds, the interval is the value itself.
    """

    value: float
    low: float
    high: float
    n: int


class BrokenRule(NamedTuple):
    """A rule that a person's work breaks, with the measured evidence."""

    measure: str
    limit: float
    value: float
    low: float
    high: float
    n: int


class RuleProblem(NamedTuple):
    """A problem in a line, counted from 1; `words` are the message's placeholders."""

    line: int
    message: str
    words: Mapping[str, Any]


class RuleError(ValueError):
    """Raised for a text with invalid rules; `problems` lists them."""

    def __init__(self, problems: Sequence[RuleProblem]) -> None:
        super().__init__(problems)
        self.problems = problems


def read_rules(text: str) -> tuple[Rule, ...]:
    """Parse the rules in a text, one per line; empty lines are ignored. Raises RuleError."""
    rules: dict[str, Rule] = {}
    problems: list[RuleProblem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = RULE_PATTERN.fullmatch(" ".join(line.split()))
        if not match:
            problems.append(RuleProblem(number, FORM, {}))
            continue
        for message, words in _find_problems(match, rules):
            problems.append(RuleProblem(number, message, words))
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
    """Yield the message and placeholders of each problem in a line.

    rules: those of the preceding lines.
    """
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


def find_broken_rules(
    rules: Sequence[Rule], measures: Mapping[str, MeasuredValue], answers: int
) -> tuple[BrokenRule, ...]:
    """Return the rules that a person's work breaks.

    Parameters
    ----------
    rules
        The owner's rules.
    measures
        The person's measures, by name.
    answers
        Number of possible answers to an item, from which chance is computed.

    Notes
    -----
    A share breaks a rule only if its whole interval is beyond the limit. A measure that is missing,
    or has fewer answers than the rule requires, breaks nothing.
    """
    broken_rules = []
    for rule in rules:
        measure = measures.get(rule.measure)
        # At least one answer, whatever the rule says: without any there is no share.
        if measure is None or measure.n < max(rule.least, 1):
            continue
        chance = 1 / answers if rule.over_chance else 0.0
        limit = rule.limit + chance
        is_below = MEASURES[rule.measure].side == "below"
        # By the end of the interval that is kinder to the person.
        if measure.high < limit if is_below else measure.low > limit:
            broken_rules.append(BrokenRule(rule.measure, limit, *measure))
    return tuple(broken_rules)
