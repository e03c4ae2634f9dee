"""The page on which a task's editors ask for paraphrases of a set and check them."""

from itertools import islice

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import User
from core.web.refusals import as_form_error, as_message
from evaluation.judges.paraphrases.forms import ParaphraseForm
from evaluation.judges.paraphrases.selectors import beside, counts, fitting
from evaluation.judges.paraphrases.services import (
    ask_for_paraphrases,
    decide_paraphrases,
    take_paraphrases,
)
from evaluation.models import EvaluationSet, Paraphrase
from evaluation.sets.selectors import latest_version
from tasks.access import find_edited

State = Paraphrase.State
SHOWN = 10
CHECKED = (State.WAITING, State.KEPT, State.REFUSED)


def _set(request: HttpRequest, code: str, name: str) -> tuple[EvaluationSet, User]:
    task, user = find_edited(request, code)
    return get_object_or_404(task.evaluation_sets.select_related("task"), name=name), user


@require_http_methods(["GET", "POST"])
def paraphrases(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """What was asked for and what became of it, the next ones to check, and the form."""
    one, user = _set(request, code, name)
    form = ParaphraseForm(one.task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            ask_for_paraphrases(evaluation_set=one, actor=user, **form.cleaned_data)
            return redirect("evaluation:paraphrases", code=code, name=name)
    version, numbers = latest_version(one), counts(one)
    shown = next((s for s in CHECKED if s == request.GET.get("state")), State.WAITING)
    pairs = islice(fitting(version, shown), SHOWN) if version else ()
    values = {
        "task": one.task,
        "one": one,
        "form": form,
        "version": version,
        "numbers": [(state, numbers[state]) for state in State],
        "listed": CHECKED,
        "shown": shown,
        "items": [beside(one.task.config, *pair) for pair in pairs],
        "in_version": version.paraphrases.count() if version else 0,
        "job": one.paraphrasings.select_related("target").first(),
    }
    status = 422 if form.errors else 200
    return render(request, "evaluation/paraphrases.html", values, status=status)


@require_POST
def check(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Keep or refuse those that somebody has looked at."""
    one, user = _set(request, code, name)
    count = decide_paraphrases(evaluation_set=one, decisions=_decided(request.POST), actor=user)
    said = ngettext("%(number)d checked.", "%(number)d checked.", count)
    messages.success(request, said % {"number": count})
    return redirect("evaluation:paraphrases", code=code, name=name)


def _decided(sent: QueryDict) -> dict[str, list[int]]:
    """The ids of what was kept and refused; a name that is none of the form's is ignored."""
    found: dict[str, list[int]] = {State.KEPT: [], State.REFUSED: []}
    for name, state in sent.items():
        pk = name.removeprefix("paraphrase-")
        if pk != name and pk.isdecimal() and len(pk) < 18 and state in found:
            found[str(state)].append(int(pk))
    return found


@require_POST
def take(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Make the next version of the set, with what was kept."""
    one, user = _set(request, code, name)
    with as_message(request):
        version = take_paraphrases(evaluation_set=one, actor=user)
        messages.success(request, _("%(version)s is made.") % {"version": version})
        return redirect("evaluation:set", code=code, name=name)
    return redirect("evaluation:paraphrases", code=code, name=name)
