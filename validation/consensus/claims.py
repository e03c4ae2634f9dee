"""The claim about an example that validators judge: the author's label, or who was right."""

from typing import Literal, Protocol

from tasks.config.schema import TaskConfig
from validation.consensus.consensus import Decision, Verdict, Vote, is_validated_error, is_verified

FOOLED_BY_OUTCOME = {"fooled": True, "not_fooled": False}
RULE_VERDICTS = ("pattern", "secret")
"""The verdict rules by which the server alone decides about the model's answer."""
MODEL_VERDICTS = ("ask_user", "criteria", *RULE_VERDICTS)
UNKNOWN_OUTCOME = "unknown"
"""The outcome of imported examples whose source does not say whether the model was right."""
ASKED_OUTCOMES = (*FOOLED_BY_OUTCOME, "undecided", UNKNOWN_OUTCOME)
"""The outcomes of examples that a model answered."""


def find_label_field(config: TaskConfig) -> str | None:
    """Return the field whose labels validators choose from; None if they give a verdict instead."""
    if config.validation.mode == "verdict":
        return None
    fields = config.target_fields
    return next(name for name in fields if config.get_component(name).type == "multiclass")


def is_about_model(config: TaskConfig, outcome: str) -> bool:
    """Return whether validators judge the model's answer instead of the author's.

    They do if they choose no labels, and if the author, a pattern or a secret decides whether the
    model was fooled. They then confirm or deny that claim.
    """
    is_claimed = config.verdict.type in MODEL_VERDICTS and find_label_field(config) is None
    return is_claimed and outcome in ASKED_OUTCOMES


class JudgeableExample(Protocol):
    """The fields of an example that determine the question to its judges."""

    @property
    def outcome(self) -> str:
        """Return the outcome, which says whether the model was fooled."""

    @property
    def decided_by(self) -> str:
        """Return what decided the outcome: `rule` or `author`."""

    @property
    def uid(self) -> str | None:
        """Return an imported example's own id."""


def is_proved(config: TaskConfig, example: JudgeableExample) -> bool:
    """Return whether a rule of this site has determined whether the model was fooled.

    False if the pattern took too long, so that the author had to decide, and if an imported file
    states the outcome.
    """
    is_known = example.outcome in FOOLED_BY_OUTCOME and find_label_field(config) is None
    # A file of examples can state any outcome, so an imported one is not proved.
    is_decided_here = example.decided_by == "rule" and example.uid is None
    return config.verdict.type in RULE_VERDICTS and is_known and is_decided_here


def is_only_attempt_judged(config: TaskConfig, example: JudgeableExample) -> bool:
    """Return whether judges decide only whether the attempt is fair.

    They do if a rule has proved whether the model was fooled.

    Fair is stored as the verdict that confirms the outcome, and unfair as a flag. So these votes
    are counted together with earlier ones, which were about the model's answer.
    """
    return config.asks_about_attempts and is_proved(config, example)


def has_custom_wording(config: TaskConfig, example: JudgeableExample) -> bool:
    """Return whether the configuration's own wording fits the question that is asked.

    Wording about a model's answer does not fit an example that no model answered. Wording about an
    attempt does not fit an example without a proved outcome.
    """
    if config.validation.asks == "attempt":
        return is_only_attempt_judged(config, example)
    is_about_author = (
        config.verdict.type not in MODEL_VERDICTS or find_label_field(config) is not None
    )
    return is_about_author or is_about_model(config, example.outcome)


def find_confirming_verdict(
    config: TaskConfig, outcome: str
) -> Literal["correct", "incorrect"] | None:
    """Return the verdict that agrees with the author; None if the author has not answered yet."""
    if not is_about_model(config, outcome):
        return "correct"
    is_fooled = FOOLED_BY_OUTCOME.get(outcome)
    if is_fooled is None:
        return None
    return "incorrect" if is_fooled else "correct"


def find_accepting_vote(config: TaskConfig, outcome: str, author_label: str | None) -> Vote | None:
    """Return the vote that agrees with the author.

    None if the author has given no label, or has not said whether the model was right.
    """
    if find_label_field(config):
        return Vote(label=author_label) if author_label else None
    confirming_verdict = find_confirming_verdict(config, outcome)
    return Vote(verdict=confirming_verdict) if confirming_verdict else None


def find_rejecting_vote(config: TaskConfig, example: JudgeableExample) -> Vote:
    """Return the vote that denies the author's claim; a flag if no verdict does."""
    is_asked = find_label_field(config) is None and not is_only_attempt_judged(config, example)
    confirming_verdict = find_confirming_verdict(config, example.outcome) if is_asked else None
    denying_verdict: Verdict = "incorrect" if confirming_verdict == "correct" else "correct"
    # Even if no verdict contradicts the claim, a flag prevents its confirmation.
    return Vote(verdict=denying_verdict if confirming_verdict else "flagged")


def assess_claim(
    config: TaskConfig,
    outcome: str,
    decision: Decision,
    author_label: str | None,
    model_label: str | None,
) -> tuple[bool, bool]:
    """Return whether a decision confirms the author's claim, and whether it confirms a model error.

    Parameters
    ----------
    config
        The task's configuration.
    outcome
        Whether the model was fooled; "unknown" for imports whose source does not say so.
    decision
        The decision of the votes, or of an owner.
    author_label
        None if the author gives none.
    model_label
        Used only if the outcome is unknown.

    Returns
    -------
    tuple
        Whether the decision verifies the example, and whether it is a validated model error.

    Notes
    -----
    If nobody claims anything about the model's answer, only people decide whether it is right.
    """
    if outcome == UNKNOWN_OUTCOME and is_about_model(config, outcome):
        return decision.verdict in ("correct", "incorrect"), decision.verdict == "incorrect"
    confirming_verdict = find_confirming_verdict(config, outcome)
    is_fooled = FOOLED_BY_OUTCOME.get(outcome)
    is_error = is_validated_error(
        decision,
        author_label,
        model_label,
        is_fooled=is_fooled,
        confirming_verdict=confirming_verdict,
    )
    return is_verified(decision, author_label, confirming_verdict), is_error
