"""The owners' page of results: right answers by model and slice, and all figures by part."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from annotation.machine_text.selectors import build_machine_share_report
from annotation.machine_text.words import list_signal_lines
from annotation.models import Example
from dynabench.manage.access import find_owned_task
from tasks.models import Round, Task
from tasks.permissions import can_read
from validation.statistics.answers import count_decided_labels, count_right_answers

ALL_ROUNDS = ""


class ResultsRoundForm(forms.Form):
    """A form for the round whose results are shown; all rounds by default."""

    are_all_optional = True

    round = forms.TypedChoiceField(coerce=int, required=False, label=_("Round"), empty_value=None)

    def __init__(self, rounds: list[Round], query_data: Any) -> None:
        super().__init__(query_data)
        choices: list[tuple[Any, Any]] = [(ALL_ROUNDS, _("All rounds"))]
        for round in rounds:
            choices.append((round.number, round.number))
        self.fields["round"].choices = choices  # type: ignore[attr-defined]

    def select_rounds(self, rounds: list[Round]) -> list[Round]:
        """Return the requested rounds; all if the query names no round of the task."""
        number = None
        if self.is_valid():
            number = self.cleaned_data.get("round")
        return [round for round in rounds if number in (None, round.number)]


@require_safe
def show_results(request: HttpRequest, code: str) -> HttpResponse:
    """Show how often people chose each label, and how often each model was right."""
    task = find_owned_task(request, code, can_read)
    return render(request, "own/results.html", build_results_values(task, request.GET))


def build_results_values(task: Task, query_data: Any) -> dict[str, Any]:
    """Return the page's values. At most six queries."""
    rounds = list(task.rounds.order_by("number"))
    for round in rounds:
        round.task = task  # saves a query for each
    # Bound to the address, so an unknown round counts as all of them.
    form = ResultsRoundForm(rounds, query_data)
    chosen_rounds = form.select_rounds(rounds)
    answers, labels = count_right_answers(chosen_rounds), count_decided_labels(chosen_rounds)
    values = {"task": task, "form": form, "rounds": rounds, "found": answers}
    report = build_machine_share_report(Example.objects.filter(round__in=chosen_rounds))
    values |= {"machine_share": report, "signal_lines": list_signal_lines(report)}
    return {**values, "labels": labels, "columns": list(labels.get("", ()))}
