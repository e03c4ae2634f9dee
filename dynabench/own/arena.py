"""The owners' page of an arena: its models, gold pairs, conversations that wait, voters."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from dynabench.accounts.people import person, shown_name
from dynabench.lib.refusals import as_form_error, as_message
from leaderboard.battles import owner_services as services
from leaderboard.battles.forms import LONGEST_PROMPT
from leaderboard.battles.voters import voters_of
from leaderboard.models import Battle
from tasks.access import find_task
from tasks.models import TargetModel, Task
from tasks.permissions import can_edit, can_review
from tasks.targets.connect import CONVERSING
from tasks.targets.contact_pages import show_contact
from tasks.targets.endpoints.live import LONGEST_ANSWER
from tasks.targets.forms import SettingsForm
from tasks.targets.spending_services import used_outside

MOST_SHOWN = 100
"""Voters and conversations on the page."""


class ModelForm(SettingsForm):
    """A model of an arena: at an address, or loaded by our model server; see docs/targets.md."""

    adapter = forms.ChoiceField(
        choices=[(name, name) for name in CONVERSING], initial="openai_chat", label=_("Adapter")
    )


class GoldForm(forms.Form):
    """A prompt with a good answer and a broken one."""

    prompt = forms.CharField(
        max_length=LONGEST_PROMPT, label=_("Message"), widget=forms.Textarea(attrs={"rows": 2})
    )
    good = forms.CharField(
        max_length=LONGEST_ANSWER, label=_("Good answer"), widget=forms.Textarea(attrs={"rows": 4})
    )
    broken = forms.CharField(
        max_length=LONGEST_ANSWER,
        label=_("Broken answer"),
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Plainly worse: cut off, off the question, or full of errors."),
    )


def _arena(request: HttpRequest, code: str, may: Any = can_edit) -> Task:
    return find_task(request, code, may, kinds=("arena",))


def _model_form(request: HttpRequest, task: Task, data: Any = None) -> ModelForm:
    form = ModelForm(data, instance=TargetModel(task=task))
    if not request.user.is_superuser:
        del form.fields["secret_env"]
    return form


def _page(request: HttpRequest, task: Task, **forms: Any) -> HttpResponse:
    waiting = Battle.objects.filter(task=task, release=Battle.Release.WAITING).order_by("pk")
    values = {
        "task": task,
        "may": can_edit(request.user, task),
        "targets": task.targets.select_related("contestant"),
        "other_uses": used_outside(task),
        "gold_pairs": task.gold_pairs.all(),
        "waiting": waiting.prefetch_related("turns__replies")[:MOST_SHOWN],
        "waiting_count": waiting.count(),
        "voters": [(shown_name(one.annotator), one) for one in voters_of(task)[:MOST_SHOWN]],
        "model_form": _model_form(request, task),
        "gold_form": GoldForm(),
        **forms,
    }
    status = 422 if any(form.errors for form in forms.values()) else 200
    return render(request, "own/arena.html", values, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def arena(request: HttpRequest, code: str) -> HttpResponse:
    """All of it; a POST adds a model."""
    if request.method != "POST":
        return _page(request, _arena(request, code, can_review))
    task = _arena(request, code)
    form = _model_form(request, task, request.POST)
    if form.is_valid():
        with as_form_error(form):
            made = services.add_model(task=task, actor=person(request), fields=form.cleaned_data)
            messages.success(request, gettext("The model is in. Battles may draw it now."))
            show_contact(request, made)
            return redirect("own:arena", code)
    return _page(request, task, model_form=form)


@require_POST
def arena_gold(request: HttpRequest, code: str) -> HttpResponse:
    """Make a gold pair."""
    task = _arena(request, code)
    form = GoldForm(request.POST)
    if form.is_valid():
        with as_form_error(form):
            services.add_gold(task=task, actor=person(request), **form.cleaned_data)
            return redirect("own:arena", code)
    return _page(request, task, gold_form=form)


@require_POST
def arena_model(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Let battles draw a target, or no more."""
    task = _arena(request, code)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    with as_message(request):
        services.set_live(target=target, actor=person(request), is_live="on" in request.POST)
    return redirect("own:arena", code)


@require_POST
def arena_gold_pair(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Hand a gold pair out, or no more."""
    pair = get_object_or_404(_arena(request, code).gold_pairs.select_related("task"), pk=pk)
    services.set_gold_active(pair=pair, actor=person(request), is_active="on" in request.POST)
    return redirect("own:arena", code)


@require_POST
def arena_conversation(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Publish a conversation that waits, or withhold it."""
    task = _arena(request, code, can_review)
    battle = get_object_or_404(task.battles.select_related("task"), pk=pk)
    with as_message(request):
        publish = "publish" in request.POST
        services.decide_release(battle=battle, actor=person(request), publish=publish)
    return redirect("own:arena", code)
