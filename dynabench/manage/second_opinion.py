"""The page that compares Dawid and Skene's model of a round with the decisions of the policy."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.accounts.people import get_shown_name
from core.figures.squares import draw_square
from core.web.lists import list_page
from dynabench.manage.access import find_owned_round
from dynabench.manage.selectors import summarise_inputs
from tasks.models import Round
from validation.decisions.second_opinion import SecondOpinion
from validation.decisions.second_opinion import compute_second_opinion as fitted
from validation.models import Consensus
from validation.rates.rates import Undefined

PAGE_SIZE = 50
"""The number of rows per page in each of the two tables."""


class Disagreement(NamedTuple):
    """An example for which the model prefers another label than the consensus.

    posterior: the model's probability of its label, from 0 to 1.
    """

    example: int
    consensus: str
    label: str
    posterior: float


@require_safe
def show_second_opinion(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the model's estimates of validators, and its disagreements with the consensus."""
    round = find_owned_round(request, code, number)
    opinion = fitted(round)
    values: dict[str, Any] = {"task": round.task, "round": round}
    if isinstance(opinion, Undefined):
        values["reason"] = opinion.reason
    else:
        values["model"] = opinion
        values["validators"] = []
        validator_page = list_page(request, opinion.validators, size=PAGE_SIZE, name="validators")
        for validator in validator_page:
            name = get_shown_name(validator.annotator)
            confusion = []
            for true_label, probabilities in validator.confusion.items():
                confusion.append((true_label, list(probabilities.values())))
            confusion_chart = draw_square([probabilities for _label, probabilities in confusion])
            values["validators"].append((name, validator.reliability, confusion, confusion_chart))
        values["validator_page"] = validator_page
        page = list_page(request, find_disagreements(round, opinion), size=PAGE_SIZE)
        examples = Example.objects.in_bulk([row.example for row in page])
        values["page"] = page
        values["otherwise"] = []
        for row in page:
            example = examples[row.example]
            text = summarise_inputs(round.task.config, example.inputs).text
            values["otherwise"].append((example, text, row))
    return render(request, "own/second_opinion.html", values)


def find_disagreements(round: Round, opinion: SecondOpinion) -> list[Disagreement]:
    """Return the examples on which the model disagrees with the consensus, the surest first."""
    rows = []
    decided_rows = Consensus.objects.filter(round=round, state=Consensus.State.DECIDED)
    # Many rows, of which few are shown: no instances, and not all at once.
    for pk, label in decided_rows.exclude(label="").values_list("pk", "label").iterator():
        posterior = opinion.posteriors.get(pk, {})
        best_label = max(posterior, key=lambda name: posterior[name], default=label)
        if best_label != label:
            rows.append(Disagreement(pk, label, best_label, posterior[best_label]))
    return sorted(rows, key=lambda row: -row.posterior)
