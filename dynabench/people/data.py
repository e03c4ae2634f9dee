"""The pages on which people download or delete what is stored about them."""

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotation.models import GatePass
from core.accounts.models import Annotator, User
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.downloads import respond_with_lines
from core.web.refusals import show_as_message
from dynabench.people.deletion.services import delete_person
from dynabench.people.export import export_person
from tasks.models import TaskMember


@require_GET
def show_my_data(request: HttpRequest) -> HttpResponse:
    """Show what is stored about the person, and what they can do with it."""
    annotator = get_annotator(get_person(request))
    consents = (
        GatePass.objects.filter(annotator=annotator).select_related("task").order_by("passed_at")
    )
    return render(request, "me/data.html", {"consents": consents})


@require_GET
def download_my_data(request: HttpRequest) -> StreamingHttpResponse:
    """Download everything about the person as JSON."""
    user = get_person(request)
    return respond_with_export(user, get_annotator(user))


def respond_with_export(user: User, annotator: Annotator) -> StreamingHttpResponse:
    """Return a response with a person's data as a file. It must not be cached."""
    response = respond_with_lines(
        export_person(user, annotator), f"dynabench-{annotator.pseudonym}.json", "application/json"
    )
    # Behind a personal link nobody is signed in, so no middleware would say so.
    response["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "POST"])
@reauthentication_required  # type: ignore[untyped-decorator]
def delete_my_account(request: HttpRequest) -> HttpResponse:
    """Show what deleting the account means; a POST deletes it.

    Requires a recent reauthentication.
    """
    user = get_person(request)
    if request.method == "GET":
        owned_memberships = TaskMember.objects.select_effective().filter(
            user=user, role=TaskMember.Role.OWNER
        )
        # Their tasks lose this owner, so the page names them first.
        task_links = []
        for member in owned_memberships.select_related("task"):
            task_links.append((reverse("task", args=[member.task.code]), member.task.name))
        links = format_html_join(", ", '<a href="{}">{}</a>', task_links)
        return render(request, "me/delete.html", {"owned": links})
    # A POST alone, as from a page that was left open, deletes nothing.
    if request.POST.get("sure") != "yes":
        return redirect("me:delete")
    with show_as_message(request):
        delete_person(user=user)  # raises for the last administrator, who then stays signed in
        logout(request)
        messages.success(request, _("Your account has been deleted."))
    return redirect("home")
