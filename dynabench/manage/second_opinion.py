"""Where Dawid and Skene's model of a round differs from what the policy decided."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.accounts.people import shown_name
from core.web.lists import list_page
from dynabench.manage.access import find_owned_round
from tasks.models import Round
from validation.decisions.second_opinion import SecondOpinion
from validation.decisions.second_opinion import second_opinion as fitted
from validation.models import Consensus
from validation.rates.rates import Undefined

PAGE_SIZE = 50
"""Rows of each of the two tables on a page."""


class Disagreement(NamedTuple):
    """An example on which the model prefers another label than the consensus."""

    example: int
    consensus: str
    label: str
    posterior: float


@require_safe
def second_opinion(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the model's estimates of validators, and its disagreements with the consensus."""
    round = find_owned_round(request, code, number)
    model = fitted(round)
    values: dict[str, Any] = {"task": round.task, "round": round}
    if isinstance(model, Undefined):
        values["reason"] = model.reason
    else:
        values["model"] = model
        values["validators"] = []
        validator_page = list_page(request, model.validators, size=PAGE_SIZE, name="validators")
        for validator in validator_page:
            name = shown_name(validator.annotator)
            confusion = []
            for true_label, chances in validator.confusion.items():
                confusion.append((true_label, list(chances.values())))
            values["validators"].append((name, validator.reliability, confusion))
        values["validator_page"] = validator_page
        page = list_page(request, find_disagreements(round, model), size=PAGE_SIZE)
        examples = Example.objects.in_bulk([row.example for row in page])
        values["page"] = page
        values["otherwise"] = [(examples[row.example], row) for row in page]
    return render(request, "own/second_opinion.html", values)


def find_disagreements(round: Round, model: SecondOpinion) -> list[Disagreement]:
    """Return the examples on which the model disagrees with the consensus, surest first."""
    rows = []
    decided = Consensus.objects.filter(round=round, state=Consensus.State.DECIDED)
    # Many rows, of which few are shown: no instances, and not all at once.
    for pk, label in decided.exclude(label="").values_list("pk", "label").iterator():
        posterior = model.posteriors.get(pk, {})
        best = max(posterior, key=lambda name: posterior[name], default=label)
        if best != label:
            rows.append(Disagreement(pk, label, best, posterior[best]))
    return sorted(rows, key=lambda row: -row.posterior)
