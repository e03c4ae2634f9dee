"""The verdict on one example: whether the targets' answers mean that the model was fooled."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from annotation.verdict.marks import compute_marks_f1
from annotation.verdict.secret import get_secret, is_secret_revealed
from annotation.verdict.texts import contains_text, matches_pattern
from core.text.words import compose_value, split_answer_words
from tasks.config.verdicts import ByCriteria, Decide, Rank, SpansF1, StringF1, VerdictRule

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
    """The verdict over all targets, and the verdict on each, in the order of their answers.

    fooled: None while undecided.
    """

    fooled: bool | None
    target_verdicts: tuple[TargetVerdict, ...]
    status: Status


def normalise_squad_text(text: str, language: str = "") -> str:
    """Return the text in lower case, without punctuation, English articles and extra spaces.

    See `split_answer_words`.

    >>> normalise_squad_text("The  U.S. Army!")
    'us army'
    """
    return " ".join(split_answer_words(text, language=language))


def compute_squad_f1(prediction: str, gold: str, language: str = "") -> float:
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
        split_answer_words(text, language=language) for text in (prediction, gold)
    )
    if not predicted_words and not true_words:
        return 1.0
    return (
        2
        * (Counter(predicted_words) & Counter(true_words)).total()
        / (len(predicted_words) + len(true_words))
    )


def is_exact_match(prediction: str, gold: str, language: str = "") -> bool:
    """Return whether two answers are equal after normalisation, as SQuAD's EM.

    Verdicts compare answers without this normalisation.
    """
    return split_answer_words(prediction, language=language) == split_answer_words(
        gold, language=language
    )


def compute_share_in_order(predicted_ranking: Sequence[str], true_ranking: Sequence[str]) -> float:
    """Return the share (0-1) of pairs whose order is the same in both rankings.

    Equal to (1 + Kendall's τ) ÷ 2.

    >>> compute_share_in_order(["b", "a", "c", "d"], ["a", "b", "c", "d"])  # one of six is swapped
    0.8333333333333334
    """
    positions = {text: number for number, text in enumerate(predicted_ranking)}
    pairs = list(combinations(true_ranking, 2))
    discordant_count = sum(positions[better] > positions[worse] for better, worse in pairs)
    return 1 - discordant_count / len(pairs)


def judge_outputs(
    expected: Mapping[str, Any],
    outputs: Sequence[Mapping[str, Any]],
    rule: VerdictRule,
    ensemble: Ensemble,
    language: str = "",
) -> Outcome:
    """Return the outcome of comparing each output with `expected`, the author's inputs.

    language: the task's, which determines case folding. The outcome is undecided only while
    undecided targets could still change it. Without outputs, and for decisions, the status is
    no_model. Raises ValueError if a compared field is missing.
    """
    verdicts = tuple(_build_verdict(expected, output, rule, language) for output in outputs)
    if rule.type == "decide":
        return Outcome(None, verdicts, "no_model")
    return _decide_outcome(verdicts, ensemble)


def resolve_outcome(outcome: Outcome, author_says_model_right: bool) -> Outcome:
    """Return the outcome after the author has decided all undecided targets.

    The ensemble's rules are monotone and the outcome was open, so the author's answer
    determines the whole outcome. Raises ValueError if it was already decided.
    """
    if outcome.status != "undecided":
        raise ValueError(f"This outcome is {outcome.status}; only an undecided one is resolved.")
    is_fooled = not author_says_model_right
    verdicts = tuple(
        replace(verdict, fooled=is_fooled) if verdict.fooled is None else verdict
        for verdict in outcome.target_verdicts
    )
    return Outcome(is_fooled, verdicts, _get_status(is_fooled))


def _decide_outcome(verdicts: tuple[TargetVerdict, ...], ensemble: Ensemble) -> Outcome:
    if not verdicts:
        return Outcome(None, (), "no_model")
    # A majority is more than half, so of two models both.
    needed_count = {"all": len(verdicts), "majority": len(verdicts) // 2 + 1, "any": 1}[ensemble]
    certain_count = sum(verdict.fooled is True for verdict in verdicts)
    possible_count = sum(verdict.fooled is not False for verdict in verdicts)
    is_fooled: bool | None = None  # open while the undecided targets could still change it
    if certain_count >= needed_count:
        is_fooled = True
    elif possible_count < needed_count:
        is_fooled = False
    return Outcome(is_fooled, verdicts, _get_status(is_fooled))


def _get_status(is_fooled: bool | None) -> Status:
    if is_fooled is None:
        return "undecided"
    return "fooled" if is_fooled else "not_fooled"


def _build_verdict(
    expected_values: Mapping[str, Any], output: Mapping[str, Any], rule: VerdictRule, language: str
) -> TargetVerdict:
    if rule.type == "ask_user":
        return TargetVerdict(True if rule.marked_is_wrong else None)
    # Of criteria the author says which are met, and of decisions only the person is judged.
    if isinstance(rule, ByCriteria | Decide):
        return TargetVerdict(None)
    if rule.type == "exact_match":
        differences = (
            _make_comparable(_get_field(expected_values, name, "example"))
            != _make_comparable(_get_field(output, name))
            for name in rule.fields
        )
        # All fields are compared, so that a missing one raises even after a difference.
        return TargetVerdict(any(list(differences)))
    answer = _get_field(output, rule.field)
    if rule.type == "pattern":
        is_found = matches_pattern(_get_text(answer), rule.pattern)
        if is_found is None:  # no search ended in time, so the author decides
            return TargetVerdict(None)
        return TargetVerdict(is_found == rule.forbidden)
    if rule.type == "secret":
        return TargetVerdict(is_secret_revealed(_get_text(answer), _get_secret(expected_values)))
    true_value = _get_field(expected_values, rule.field, "example")
    if rule.type == "contains":
        return TargetVerdict(not contains_text(_get_text(answer), _get_text(true_value), language))
    return _build_scored_verdict(answer, true_value, rule, language)


def _build_scored_verdict(
    answer: Any, true_value: Any, rule: Rank | SpansF1 | StringF1, language: str
) -> TargetVerdict:
    if rule.type == "rank":
        score = compute_share_in_order(answer, true_value)
    elif rule.type == "spans_f1":
        score = compute_marks_f1(answer, true_value, overlap=rule.overlap)
    else:
        score = compute_squad_f1(_get_text(answer), _get_text(true_value), language)
        # Between these the score tells too little, so the author decides.
        if rule.ask_between and rule.ask_between[0] <= score <= rule.ask_between[1]:
            return TargetVerdict(None, score)
    return TargetVerdict(score < rule.threshold, score)


def _get_field(values: Mapping[str, Any], name: str, owner: str = "target's output") -> Any:
    if name not in values:
        raise ValueError(f"The {owner} lacks the field {name!r}, which the verdict compares.")
    return values[name]


def _get_secret(values: Mapping[str, Any]) -> str:
    secret = get_secret(values)
    if secret is None:
        message = "The example has no conversation with a secret, which the verdict compares."
        raise ValueError(message)
    return secret


def _get_text(value: Any) -> str:
    """Return the text of a span, or the value as text."""
    return str(value["text"] if isinstance(value, Mapping) and "text" in value else value)


def _make_comparable(value: Any) -> Any:
    """Return a value in a comparable form: a span's text, a list without its order.

    Texts are normalised to NFC.
    """
    value = compose_value(value)
    if isinstance(value, Mapping) and "text" in value:
        return value["text"]
    if isinstance(value, list | tuple):
        # Mappings have no hash, so they are counted by their sorted items.
        return Counter(repr(sorted(v.items()) if isinstance(v, Mapping) else v) for v in value)
    return value
