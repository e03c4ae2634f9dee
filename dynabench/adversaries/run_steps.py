"""What a run of an adversary keeps of its steps, and how it ends or stops."""

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from dynabench.adversaries.kinds.base import Probe, ProbeAnswer, Search, Step
from dynabench.adversaries.models import AdversaryRun
from evaluation.contract import ImpossibleJob, NotNow, ServerAway
from tasks.models import Context, TargetModel
from tasks.targets.endpoints.base import Prediction

End = AdversaryRun.End
NO_ANSWER = ProbeAnswer(is_fooled=False, chance=1.0, is_answered=False)
"""What a search gets for a text that the models did not answer: it is no step forward."""


class RunEnded(Exception):
    """Raised when a run has ended. end: why."""

    def __init__(self, end: AdversaryRun.End) -> None:
        super().__init__(end)
        self.end = end


class SliceOver(Exception):
    """Raised when other jobs get their turn; the run continues later."""


class KnownTry(NamedTuple):
    """A logged try, of this run or of an earlier one in the round."""

    pk: int
    state: str
    answer: ProbeAnswer


class Question(NamedTuple):
    """A probe as the models read it.

    inputs: what a person would send by the form. digest: see `hash_question`. previous: the id of
    the try before it in a conversation.
    """

    label: str
    probe: Probe
    context: Context
    inputs: dict[str, Any]
    model_inputs: Mapping[str, Any]
    digest: str
    previous: int | None = None


def advance(search: Search, answer: ProbeAnswer | None) -> Step | None:
    """Return the search's next step; None at its end.

    Raises ImpossibleJob if the adversary's own code fails: repeated, it would fail again.
    """
    try:
        return next(search) if answer is None else search.send(answer)
    except StopIteration:
        return None
    except Exception as error:
        message = f"The adversary failed ({type(error).__name__}: {error})."
        raise ImpossibleJob(message) from error


def stop_without_model(code: str, message: str, seconds: float | None) -> NoReturn:
    """Stop the slice because a model gave no answer.

    Raises RunEnded if its budget is used up, NotNow if it is busy, and ServerAway otherwise.
    """
    if code == "spent":
        raise RunEnded(End.SPENT)
    if code in ("busy", "loading"):
        raise NotNow(message, seconds)
    raise ServerAway(message)


def describe_output(target: TargetModel, prediction: Prediction) -> dict[str, Any]:
    """Return a model's answer as it is logged."""
    prob = None if prediction.prob is None else dict(prediction.prob)
    return {"model": target.name, "output": dict(prediction.output), "prob": prob}
