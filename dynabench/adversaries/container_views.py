"""The page on which somebody brings the image of an adversary, and an owner allows it."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.adversaries.access import find_runnable_adversary
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.adversaries.image_services import allow_image, bring_image
from dynabench.adversaries.models import AdversaryImage
from dynabench.adversaries.selectors import (
    count_run_outcome,
    find_allowed_image,
    find_current_run,
)
from evaluation.isolation.uploads.chunked import (
    add_file,
    discard_upload,
    get_max_upload_bytes,
    select_open_uploads,
)
from evaluation.models import Upload
from tasks.access import find_task


class ImageForm(forms.Form):
    """A form for a program's image: its archive, or its name in a registry."""

    upload = forms.FileField(
        label=gettext_lazy("File"),
        required=False,
        help_text=gettext_lazy("The output of docker save. Or enter a registry image below."),
    )
    # Of a file that the page's script has sent in pieces before the form.
    upload_id = forms.UUIDField(required=False, widget=forms.HiddenInput)
    source = forms.CharField(
        label=gettext_lazy("Or an image in a registry"),
        max_length=500,
        required=False,
        help_text=gettext_lazy("With its digest: registry/name@sha256:…"),
    )


def _find_body_limit(user: User) -> int:
    """Return the maximum size of a form with a whole file, in bytes."""
    return get_max_upload_bytes(user) + FORM_BYTES


@limit_body(_find_body_limit)
@require_http_methods(["GET", "HEAD", "POST"])
def show_image(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show an adversary's images and the form for a new one; POST brings it."""
    person, adversary = get_person(request), find_runnable_adversary(request, code, pk)
    task = adversary.task
    is_sent = request.method == "POST"
    form = ImageForm(request.POST, request.FILES) if is_sent else ImageForm()
    if is_sent and form.is_valid():
        upload = None
        with show_as_form_error(form):
            upload = _find_upload(person, form)
            source = form.cleaned_data["source"]
            bring_image(adversary=adversary, actor=person, source=source, upload=upload)
            messages.success(request, _("Image received. Refresh this page to see its check."))
            return redirect("own-adversaries:image", code, pk)
        # A file that was sent in pieces stays, so that the corrected form can name it.
        if upload and form.cleaned_data["upload"]:
            discard_upload(upload)
    last_run = adversary.runs.select_related("round").first()
    values = {
        "task": task,
        "adversary": adversary,
        "form": form,
        "may_allow": can_run_adversaries(person, task),
        "page": list_page(request, adversary.images.all()),
        "allowed_image": find_allowed_image(adversary),
        "run": find_current_run(adversary),
        "last_run": last_run,
        "outcome": count_run_outcome(last_run),
    }
    return render(request, "own/adversary_image.html", values, status=get_form_status(form))


def _find_upload(person: User, form: ImageForm) -> Upload | None:
    """Return the upload of the form's file, or the one that was sent in pieces; None without."""
    if file := form.cleaned_data["upload"]:
        return add_file(person, file.name, file.size, file)
    if pk := form.cleaned_data["upload_id"]:
        return select_open_uploads(person).filter(pk=pk).first()
    return None


@require_POST
def allow_brought_image(request: HttpRequest, code: str, pk: int, number: int) -> HttpResponse:
    """Allow runs with an image."""
    task = find_task(request, code, can_run_adversaries)
    images = AdversaryImage.objects.select_related("adversary__task")
    image = get_object_or_404(images, adversary__task=task, adversary=pk, number=number)
    with show_as_message(request):
        allow_image(image=image, actor=get_person(request))
        messages.success(request, _("Image allowed. You can start a run."))
    return redirect("own-adversaries:image", code, pk)
