"""What a program in a container reads: its run, and the answer to each of its questions."""

from collections.abc import Mapping
from typing import Any

from dynabench.adversaries.models import BUDGET_FIELDS, AdversaryRun, AdversaryTry
from dynabench.adversaries.selectors import list_contexts_to_read


def describe_run(run: AdversaryRun) -> Mapping[str, Any]:
    """Return the first message: what the program may know before it asks.

    The texts are those of the open round that its models read, as in `program_api`.
    """
    contexts = [
        {"id": context.pk, "fields": context.fields} for context in list_contexts_to_read(run)
    ]
    config = run.round.task.config
    limits = {name: getattr(run, name) for name in BUDGET_FIELDS}
    return {
        "run": {
            "number": run.number,
            "round": run.round.number,
            "seed": run.adversary.seed,
            "labels": list(config.goal_choices),
            "language": config.language,
            "contexts": contexts,
            **limits,
        }
    }


def describe_answer(logged_try: AdversaryTry, run: AdversaryRun) -> Mapping[str, Any]:
    """Return the message about a try, with what the run has used so far."""
    return {
        "answer": {
            "state": logged_try.state,
            "reason": logged_try.reason,
            "is_fooled": logged_try.is_fooled,
            "chance": logged_try.chance,
            "outputs": logged_try.outputs,
        },
        "run": {
            "calls": run.calls,
            "examples": run.examples,
            "tokens": run.tokens,
            "cost": run.cost,
            "seconds": round(run.seconds, 1),
        },
    }
