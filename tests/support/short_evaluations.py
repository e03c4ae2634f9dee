"""A set whose answers are no secret, a paid chat model, and its short evaluations."""

from evaluation.contract import SetRow
from evaluation.jobs import evaluate_short
from evaluation.models import ShortEvaluation
from evaluation.runs.short.services import request_short_evaluation
from evaluation.test_sets.services import create_set, make_version
from tests.support.chat_models import PRICES, hand_in, worked

LABELS = ("neutral", "entailment")


def open_set(task, name="open", size=60, **told):
    """A set that may leave, whose every third right answer is entailment."""
    rows = [
        SetRow(
            f"{name}-{n}",
            {"premise": f"Premise {n}.", "hypothesis": "So."},
            (LABELS[n % 3 == 2],),
        )
        for n in range(size)
    ]
    options = {"may_leave": True, "answers_public": True} | told
    return make_version(create_set(task=task, name=name, actor=None, **options), rows, None)


def paid_model(task, owner, server, **told):
    """An accepted chat model with prices that gets only short evaluations."""
    settings = {"short_only": True, "most_cost": 1.0, **PRICES} | told
    model = worked(hand_in(task, owner, server, **settings))
    server.seen.clear()  # the examples of the check
    return model


def requested(submission, set_name="open", half_width=0.1, **told):
    return request_short_evaluation(
        submission=submission,
        actor=submission.owner,
        set_name=set_name,
        half_width=half_width,
        **told,
    )


def worked_short(evaluation):
    evaluate_short(evaluation.pk)
    return ShortEvaluation.objects.get(pk=evaluation.pk)


def asked_premises(server):
    """What the server was asked since the check of the model."""
    return [request["messages"][-1]["content"] for request in server.seen]
