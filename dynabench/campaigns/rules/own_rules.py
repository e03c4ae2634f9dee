"""An owner's own rules: limits beyond which a person's work should be checked. Pure.

A rule is a line such as `agreement below chance + 0.2 after 20`. It applies once the person has
given that many answers, here 20. A share breaks it only if its whole interval is beyond the limit.
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
    from 0 to 1; otherwise seconds. role: the role whose work is measured.
    """

    side: Side
    is_share: bool
    role: Literal["judges", "writers"]


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
"""The measures by the names in docs/campaigns.md. docs/statistics.md, “People”, defines them."""
RULE_PATTERN = re.compile(
    r"(?P<measure>[a-z-]+) (?P<side>below|above) (?P<chance>chance \+ )?"
    r"(?P<limit>\d{1,5}(\.\d{1,5})?) after (?P<least>\d{1,5})",
    re.ASCII,
)
FORM_MESSAGE = gettext_noop("write a rule such as “agreement below chance + 0.2 after 20”")
UNKNOWN_MESSAGE = gettext_noop("unknown measure, use one of: %(measures)s")
SIDE_MESSAGE = gettext_noop("%(measure)s needs the word “%(side)s”")
SHARE_MESSAGE = gettext_noop("the limit of %(measure)s must be from 0 to 1")
CHANCE_MESSAGE = gettext_noop("%(measure)s can't be compared with chance")
TWICE_MESSAGE = gettext_noop("%(measure)s appears twice")


@dataclass(frozen=True)
class Rule:
    """An owner's rule, one line of the text.

    limit: a share from 0 to 1, or seconds. over_chance: whether chance is added to the
    limit. min_answers: minimum number of answers for the rule to apply.
    """

    measure: str
    limit: float
    min_answers: int
    over_chance: bool = False

    def __str__(self) -> str:
        side, chance = MEASURES[self.measure].side, "chance + " if self.over_chance else ""
        return f"{self.measure} {side} {chance}{self.limit:g} after {self.min_answers}"


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
    """A problem with a rule.

    line: counted from 1. words: the values of the message's placeholders.
    """

    line: int
    message: str
    words: Mapping[str, Any]


class RuleError(ValueError):
    """Raised if a text has invalid rules. `problems` lists them."""

    def __init__(self, problems: Sequence[RuleProblem]) -> None:
        super().__init__(problems)
        self.problems = problems


def read_rules(text: str) -> tuple[Rule, ...]:
    """Parse the rules in a text, one per line. Empty lines are ignored. Raises RuleError."""
    rules: dict[str, Rule] = {}
    problems: list[RuleProblem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = RULE_PATTERN.fullmatch(" ".join(line.split()))
        if not match:
            problems.append(RuleProblem(number, FORM_MESSAGE, {}))
            continue
        for message, words in _find_problems(match, rules):
            problems.append(RuleProblem(number, message, words))
        name = match["measure"]
        limit, min_answers = float(match["limit"]), int(match["least"])
        # Also a wrong one, so that a second line with this measure is reported, too.
        rules[name] = Rule(name, limit, min_answers, bool(match["chance"]))
    if problems:
        raise RuleError(problems)
    return tuple(rules.values())


def _find_problems(
    match: re.Match[str], rules: Mapping[str, Rule]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the message and placeholders of each problem in a line.

    rules: the rules of the preceding lines, by measure.
    """
    name = match["measure"]
    measure = MEASURES.get(name)
    if measure is None:
        yield UNKNOWN_MESSAGE, {"measures": ", ".join(MEASURES)}
        return
    words = {"measure": name, "side": measure.side}
    if match["side"] != measure.side:
        yield SIDE_MESSAGE, words
    # Somebody has written percent.
    if measure.is_share and float(match["limit"]) > 1:
        yield SHARE_MESSAGE, words
    if match["chance"] and name != "agreement":
        yield CHANCE_MESSAGE, words
    if name in rules:
        yield TWICE_MESSAGE, words


def find_broken_rules(
    rules: Sequence[Rule], measures: Mapping[str, MeasuredValue], answer_count: int
) -> tuple[BrokenRule, ...]:
    """Return the rules that a person's work breaks.

    Parameters
    ----------
    rules
        The owner's rules.
    measures
        The person's measures, by name.
    answer_count
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
        if measure is None or measure.n < max(rule.min_answers, 1):
            continue
        chance = 1 / answer_count if rule.over_chance else 0.0
        limit = rule.limit + chance
        is_below = MEASURES[rule.measure].side == "below"
        # By the end of the interval that is kinder to the person.
        if measure.high < limit if is_below else measure.low > limit:
            broken_rules.append(BrokenRule(rule.measure, limit, *measure))
    return tuple(broken_rules)
