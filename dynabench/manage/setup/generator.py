"""The owners' page of the task's generator: the model that suggests texts to writers."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.manage.access import find_owned_task
from dynabench.manage.setup.targets import SecretForm
from tasks.models import Generator
from tasks.permissions import can_edit
from tasks.targets.contact_pages import show_contact
from tasks.targets.forms import GeneratorForm
from tasks.targets.services import remove_generator, set_generator


class GeneratorSettings(SecretForm, GeneratorForm):
    """A form for the settings of a generator."""


@require_http_methods(["GET", "POST"])
def show_generator(request: HttpRequest, code: str) -> HttpResponse:
    """Show the settings of the task's generator. A POST creates, changes or removes it."""
    task = find_owned_task(request, code, can_edit)
    user = get_person(request)
    existing_generator = Generator.objects.filter(task=task).first()
    # Before the form is read: its errors do not matter then.
    if "remove" in request.POST:
        remove_generator(task=task, actor=user)
        messages.success(request, _("Suggestion model removed."))
        return redirect("own:targets", code)
    form = GeneratorSettings(
        user, request.POST or None, instance=existing_generator or Generator(task=task)
    )
    if form.is_valid():
        with show_as_form_error(form):
            stored_generator = set_generator(
                task=task, actor=user, fields=form.read_settings(form.fields)
            )
            messages.success(request, _("Saved."))
            show_contact(request, stored_generator)
            return redirect("own:targets", code)
    values = {"task": task, "generator": existing_generator, "form": form}
    return render(request, "own/setup/generator.html", values, status=get_form_status(form))
