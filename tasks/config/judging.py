"""The configuration's `validation`: how others judge an example."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tasks.config.components import (
    Answers,
    ConfigPart,
    LabelOrText,
    Name,
    NonEmptyText,
    Share,
    TupleOf,
)

STEPS_KEY = "steps"
"""The key of a vote's metadata with the answers about steps, a label by the turn's number."""


class Votes(ConfigPart):
    """The number of votes and the rule by which they decide."""

    rule: Literal["n-equal", "at-least", "strict", "plurality"] = "n-equal"
    needed: int = Field(default=3, ge=1)
    """The number of equal votes that decide; for strict and plurality it follows from `of`."""
    of: int | None = Field(default=None, ge=1)
    """The maximum number of votes; n-equal needs none."""

    @model_validator(mode="before")
    @classmethod
    def _fill_needed_votes(cls, data: Any) -> Any:
        """Return the data, with a missing `needed` set to more than half of the votes.

        Applies to strict and plurality. The consensus code handles ties and pluralities.
        """
        if isinstance(data, dict) and data.get("rule") in ("strict", "plurality"):
            of = data.get("of")
            if isinstance(of, int) and "needed" not in data:
                return {**data, "needed": of // 2 + 1}
        return data


class Steps(ConfigPart):
    """The steps of a given conversation that people judge one by one, in addition to the whole."""

    field: Name
    """The name of a chat in the context."""
    question: Annotated[NonEmptyText, Field(max_length=200)] | None = None
    """The question about each step; null: whether it is right."""
    labels: TupleOf[LabelOrText] = ()
    """The labels of a step; empty: those of the answer."""
    roles: TupleOf[Literal["assistant", "tool"]] = ("assistant", "tool")
    """Whose turns are steps."""


class Sample(ConfigPart):
    """The rule by which people judge a random sample, after a judge model answered everything."""

    judge: Annotated[NonEmptyText, Field(max_length=60)]
    """The name of a model of the task that authors don't try to fool."""
    by_instruction: bool = False
    """Whether the model, a chat model, answers the judges' question instead of giving its label.

    Always so if authors choose no label.
    """
    prompt: Annotated[NonEmptyText, Field(max_length=10_000)] | None = None
    """The instruction; null: the site's own."""
    # As the form of the sample: below, one vote would stand for more than a hundred examples.
    min_chance: float = Field(default=0.1, ge=0.01, le=1)
    """The chance of an example of which the judge model is sure."""


class ValidationPolicy(ConfigPart):
    """The settings for judging examples."""

    mode: Literal["label", "verdict"] = "verdict"
    """The kind of vote.

    label: their own label, chosen blindly; verdict: correct, incorrect or flagged.
    """
    asks: Literal["answer", "attempt"] | None = None
    """The subject of a verdict if the rule `pattern` or `secret` decides the outcome.

    null: the attempt for `secret` without `question` and `answers`; otherwise the answer.
    """
    question: Annotated[NonEmptyText, Field(max_length=200)] | None = None
    """The question to judges; null: whether the answer is correct, or which label is right."""
    answers: Answers | None = None
    """For mode verdict: the words of the two answers to the question.

    If the question is about an attempt, `correct` means that it is fair, `incorrect` that it is
    not.
    """
    votes: Votes = Votes()
    judge_not_fooled: Share = 0.2
    """The share to judge of the examples that did not fool the model."""
    sample: Sample | None = None
    """The sample of these that people judge; null: they judge all of them."""
    reveal: bool = False
    """Whether validators see the author's label and the model's answer after their vote."""
    steps: Steps | None = None
    """The steps of a conversation that are judged, too; null: only whole examples are judged."""
    corrections: bool = False
    """Whether validators who vote that a free answer is incorrect may enter the right one."""
