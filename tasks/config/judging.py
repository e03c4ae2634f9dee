"""How others judge an example: a configuration's `validation`."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tasks.config.components import Answers, ConfigPart, Share, Words


class Votes(ConfigPart):
    """The number of votes and the rule by which they decide."""

    rule: Literal["n-equal", "at-least", "strict", "plurality"] = "n-equal"
    needed: int = Field(default=3, ge=1)
    """Equal votes that decide; for strict and plurality it follows from `of`."""
    of: int | None = Field(default=None, ge=1)
    """Most votes; n-equal needs none."""

    @model_validator(mode="before")
    @classmethod
    def _majority(cls, data: Any) -> Any:
        """Set a missing `needed` to more than half of the votes.

        The consensus code handles ties and pluralities.
        """
        if isinstance(data, dict) and data.get("rule") in ("strict", "plurality"):
            of = data.get("of")
            if isinstance(of, int) and "needed" not in data:
                return {**data, "needed": of // 2 + 1}
        return data


class ValidationPolicy(ConfigPart):
    """The settings for judging examples."""

    mode: Literal["label", "verdict"] = "verdict"
    """label: their own label, chosen blindly; verdict: correct, incorrect or flagged."""
    asks: Literal["answer", "attempt"] | None = None
    """What a verdict is about where the verdict `pattern` or `secret` has decided whether the model
    was fooled; null: with `secret` the attempt, unless question or answers are given."""
    question: Annotated[Words, Field(max_length=200)] | None = None
    """What judges are asked; null: whether the answer is correct, or which label is right."""
    answers: Answers | None = None
    """Of mode verdict: the words of its two answers to that question; of an attempt, `correct` says
    that it is fair, `incorrect` that it is not."""
    votes: Votes = Votes()
    judge_not_fooled: Share = 0.2
    """Share of the examples that did not fool the model which are judged too."""
    reveal: bool = False
    """Whether validators see the author's label and the model's answer after their vote."""
    corrections: bool = False
    """Whether validators who say that a free answer is incorrect may type the right one."""
