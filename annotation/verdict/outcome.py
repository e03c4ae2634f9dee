"""Was the model fooled? The verdict on one example, from what the targets answered."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from annotation.verdict.marks import marks_f1
from annotation.verdict.secret import secret_of, tells
from annotation.verdict.texts import contains, matches
from core.text.words import answer_words, composed_value
from tasks.config.verdicts import VerdictRule

Ensemble = Literal["all", "majority", "any"]
Status = Literal["fooled", "not_fooled", "undecided", "no_model"]


@dataclass(frozen=True)
class TargetVerdict:
    """The verdict on one target.

    fooled: None if the author must decide. score: the compared value (0-1), token F1 or the
    share of pairs in order; None for rules without a score.
    """

    fooled: bool | None
    score: float | None = None


@dataclass(frozen=True)
class Outcome:
    """The verdict over all targets, and on each in the order asked.

    fooled: None while undecided.
    """

    fooled: bool | None
    per_target: tuple[TargetVerdict, ...]
    status: Status


def squad_normalise(text: str, language: str = "") -> str:
    """Lower the case, and remove punctuation, English articles and extra spaces.

    See `answer_words`.

    >>> squad_normalise("The  U.S. Army!")
    'us army'
    """
    return " ".join(answer_words(text, language=language))


def squad_f1(prediction: str, gold: str, language: str = "") -> float:
    """Compute the F1 (0-1) of two bags of normalised words; symmetric.

    Parameters
    ----------
    prediction, gold
        The two texts.
    language
        A language tag such as `tr`, which determines case folding.

    Notes
    -----
    Rajpurkar et al. 2016, section 6.1. As in SQuAD v2.0, the F1 is 1 if both texts are empty, and 0
    if only one is. The result comes from a single division, so that an F1 of 2/5 equals the
    threshold 0.4.
    """
    predicted_words, true_words = (
        answer_words(text, language=language) for text in (prediction, gold)
    )
    if not predicted_words and not true_words:
        return 1.0
    return (
        2
        * (Counter(predicted_words) & Counter(true_words)).total()
        / (len(predicted_words) + len(true_words))
    )


def exact_match(prediction: str, gold: str, language: str = "") -> bool:
    """Return whether two answers are equal after normalisation, as SQuAD's EM.

    Verdicts compare answers without this normalisation.
    """
    return answer_words(prediction, language=language) == answer_words(gold, language=language)


def pairs_in_order(predicted_ranking: Sequence[str], true_ranking: Sequence[str]) -> float:
    """Return the share (0-1) of pairs whose order is the same in both rankings.

    Equal to (1 + Kendall's τ) ÷ 2.

    >>> pairs_in_order(["b", "a", "c", "d"], ["a", "b", "c", "d"])  # one of six is swapped
    0.8333333333333334
    """
    place = {text: number for number, text in enumerate(predicted_ranking)}
    pairs = list(combinations(true_ranking, 2))
    apart = sum(place[better] > place[worse] for better, worse in pairs)
    return 1 - apart / len(pairs)


def judge(
    expected: Mapping[str, Any],
    outputs: Sequence[Mapping[str, Any]],
    rule: VerdictRule,
    ensemble: Ensemble,
    language: str = "",
) -> Outcome:
    """Compare the target fields of `expected` (the author's inputs) with each output.

    language: the task's, which determines case folding.
    An undecided target leaves the outcome open only if it could still change it. Without
    outputs the status is no_model. Raises ValueError if a compared field is missing.
    """
    return _outcome(
        tuple(_verdict(expected, output, rule, language) for output in outputs), ensemble
    )


def resolve(outcome: Outcome, author_says_model_right: bool) -> Outcome:
    """Return the outcome after the author has decided all undecided targets.

    The ensemble's rules are monotone and the outcome was open, so the author's answer
    determines the whole outcome. Raises ValueError if it was already decided.
    """
    if outcome.status != "undecided":
        raise ValueError(f"This outcome is {outcome.status}; only an undecided one is resolved.")
    is_fooled = not author_says_model_right
    verdicts = tuple(
        replace(verdict, fooled=is_fooled) if verdict.fooled is None else verdict
        for verdict in outcome.per_target
    )
    return Outcome(is_fooled, verdicts, _status(is_fooled))


def _outcome(verdicts: tuple[TargetVerdict, ...], ensemble: Ensemble) -> Outcome:
    if not verdicts:
        return Outcome(None, (), "no_model")
    needed_count = {"all": len(verdicts), "majority": len(verdicts) // 2 + 1, "any": 1}[ensemble]
    certain_count = sum(verdict.fooled is True for verdict in verdicts)
    possible_count = sum(verdict.fooled is not False for verdict in verdicts)
    is_fooled: bool | None = None  # open while the undecided targets could still change it
    if certain_count >= needed_count:
        is_fooled = True
    elif possible_count < needed_count:
        is_fooled = False
    return Outcome(is_fooled, verdicts, _status(is_fooled))


def _status(is_fooled: bool | None) -> Status:
    if is_fooled is None:
        return "undecided"
    return "fooled" if is_fooled else "not_fooled"


def _verdict(
    expected_values: Mapping[str, Any], output: Mapping[str, Any], rule: VerdictRule, language: str
) -> TargetVerdict:
    if rule.type == "ask_user":
        return TargetVerdict(True if rule.marked_is_wrong else None)
    if rule.type == "exact_match":
        differences = (
            _comparable(_field(expected_values, name, "example"))
            != _comparable(_field(output, name))
            for name in rule.fields
        )
        # All fields are compared, so that a missing one raises even after a difference.
        return TargetVerdict(any(list(differences)))
    answer = _field(output, rule.field)
    if rule.type == "pattern":
        is_found = matches(_text(answer), rule.pattern)
        if is_found is None:  # no search ended in time, so the author decides
            return TargetVerdict(None)
        return TargetVerdict(is_found == rule.forbidden)
    if rule.type == "secret":
        return TargetVerdict(tells(_text(answer), _secret(expected_values)))
    true_value = _field(expected_values, rule.field, "example")
    if rule.type == "contains":
        return TargetVerdict(not contains(_text(answer), _text(true_value), language))
    if rule.type == "rank":
        score = pairs_in_order(answer, true_value)
    elif rule.type == "spans_f1":
        score = marks_f1(answer, true_value, overlap=rule.overlap)
    else:
        score = squad_f1(_text(answer), _text(true_value), language)
        # Between these the score tells too little, so the author decides.
        if rule.ask_between and rule.ask_between[0] <= score <= rule.ask_between[1]:
            return TargetVerdict(None, score)
    return TargetVerdict(score < rule.threshold, score)


def _field(values: Mapping[str, Any], name: str, owner: str = "target's output") -> Any:
    if name not in values:
        raise ValueError(f"The {owner} lacks the field {name!r}, which the verdict compares.")
    return values[name]


def _secret(values: Mapping[str, Any]) -> str:
    secret = secret_of(values)
    if secret is None:
        message = "The example has no conversation with a secret, which the verdict compares."
        raise ValueError(message)
    return secret


def _text(value: Any) -> str:
    """Return the text of a span, or the value as text."""
    return str(value["text"] if isinstance(value, Mapping) and "text" in value else value)


def _comparable(value: Any) -> Any:
    """Return a value in a comparable form: a span's text, a list without its order.

    Texts are normalised to NFC.
    """
    value = composed_value(value)
    if isinstance(value, Mapping) and "text" in value:
        return value["text"]
    if isinstance(value, list | tuple):
        # Mappings have no hash, so they are counted by their sorted items.
        return Counter(repr(sorted(v.items()) if isinstance(v, Mapping) else v) for v in value)
    return value
