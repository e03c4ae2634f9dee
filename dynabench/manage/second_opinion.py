"""Where Dawid and Skene's model of a round differs from what the policy decided."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.accounts.people import shown_name
from dynabench.manage.access import owned_round
from tasks.models import Round
from validation.decisions.second_opinion import SecondOpinion
from validation.decisions.second_opinion import second_opinion as fitted
from validation.models import Consensus
from validation.rates.rates import Undefined

SHOWN = 50
"""Of each table, those that come first."""


@require_safe
def second_opinion(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show whom the model believes, and where it says otherwise than the consensus."""
    round = owned_round(request, code, number)
    model = fitted(round)
    values: dict[str, Any] = {"task": round.task, "round": round}
    if isinstance(model, Undefined):
        values["reason"] = model.reason
    else:
        values["model"] = model
        values["validators"] = []
        for validator in model.validators[:SHOWN]:
            name = shown_name(validator.annotator)
            confusion = []
            for true_label, chances in validator.confusion.items():
                confusion.append((true_label, list(chances.values())))
            values["validators"].append((name, validator.reliability, confusion))
        values["otherwise"] = otherwise(round, model)
    return render(request, "own/second_opinion.html", values)


def otherwise(round: Round, model: SecondOpinion) -> list[tuple[Any, str, str, float]]:
    """Return (example, consensus, the model's label, its posterior), the surest first."""
    rows = []
    decided = Consensus.objects.filter(round=round, state=Consensus.State.DECIDED)
    # Many rows, of which few are shown: no instances, and not all at once.
    for pk, label in decided.exclude(label="").values_list("pk", "label").iterator():
        posterior = model.posteriors.get(pk, {})
        best = max(posterior, key=lambda name: posterior[name], default=label)
        if best != label:
            rows.append((pk, label, best, posterior[best]))
    surest = sorted(rows, key=lambda row: -row[3])[:SHOWN]
    examples = Example.objects.in_bulk([row[0] for row in surest])
    return [(examples[pk], label, best, posterior) for pk, label, best, posterior in surest]
