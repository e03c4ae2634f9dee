"""The owners' page about who sees a task."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from dynabench.accounts.people import person
from dynabench.own.access import owned_task
from tasks.permissions import can_edit
from tasks.services import change_task


class SeenForm(forms.Form):
    """Who sees a task."""

    is_visible = forms.BooleanField(
        label=gettext_lazy("Everybody sees the task"),
        required=False,
        help_text=gettext_lazy("Otherwise only its members."),
    )
    allow_try_out = forms.BooleanField(
        label=gettext_lazy("People without an account may try the models"),
        required=False,
        help_text=gettext_lazy("Nothing of that is kept."),
    )


@require_http_methods(["GET", "POST"])
def seen(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task to everybody or to its members alone."""
    task = owned_task(request, code, can_edit)
    form = SeenForm(
        request.POST if request.method == "POST" else None,
        initial={"is_visible": task.is_visible, "allow_try_out": task.allow_try_out},
    )
    if form.is_valid():
        change_task(task=task, actor=person(request), fields=form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("own:dashboard", code)
    return render(request, "own/seen.html", {"task": task, "form": form})
