"""The wall of a task's catches, and the page that a catch has if its author agrees."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.models import Example
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.lists import select_rows_after
from core.web.refusals import show_as_message
from dynabench.catches.picture import get_catch_picture
from dynabench.catches.selectors import (
    WALL_SIZE,
    CatchLine,
    build_line,
    has_standing_consent,
    load_lines,
    select_public_catches,
)
from dynabench.catches.services import share_catch, show_catches, withdraw_sharing
from dynabench.samples import describe_sample
from tasks.access import find_task, require_permission
from tasks.models import Round, Task
from tasks.permissions import can_see


@login_not_required
@require_GET
def show_wall(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's public catches, the newest first."""
    task = _find_non_sensitive_task(request, code)
    page = select_rows_after(request, select_public_catches(task), size=WALL_SIZE)
    lines = show_catches(request.user, task, page.rows)
    values = {
        "here": "catches",
        "task": task,
        "page": page,
        "lines": lines,
        "is_open": task.rounds.filter(state=Round.State.OPEN).exists(),
    }
    good_examples = task.config.examples.good
    # An empty wall would not say what a catch is.
    if not lines and good_examples:
        values["sample"] = describe_sample(task.config, good_examples[0])
    return render(request, "catches/wall.html", values)


@login_not_required
@require_GET
def show_catch(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show a catch whose author agreed. The author sees it even before it is public."""
    task = _find_non_sensitive_task(request, code)
    example = _find_shared_catch(task, uuid)
    # Only then may other sites read its text and picture.
    is_public = example is not None
    if example is None:
        example = _find_own_catch(request, task, uuid)
    if example is None or not has_standing_consent(example):
        raise Http404
    values = {
        "task": task,
        "line": _show_line(request, task, example) if is_public else build_line(example),
        "is_public": is_public,
        "is_own": _is_own(request, example),
        "address": request.build_absolute_uri(request.path),
    }
    response = render(request, "catches/catch.html", values)
    # Consent may end at any moment, and the page with it.
    response["Cache-Control"] = "private, no-store"
    return response


@login_not_required
@require_GET
def send_picture(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Send the preview picture of a shared catch that is public."""
    task = _find_non_sensitive_task(request, code)
    example = _find_shared_catch(task, uuid)
    if example is None:
        raise Http404
    line = _show_line(request, task, example)
    file = get_catch_picture(line.text, _build_headline(line))
    return HttpResponse(file, content_type="image/png", headers={"Cache-Control": "no-store"})


def _show_line(request: HttpRequest, task: Task, example: Example) -> CatchLine:
    """Return the line of a public catch. Raises Http404 if its release was undone meanwhile."""
    lines = show_catches(request.user, task, [example])
    if not lines:
        raise Http404
    return lines[0]


def _build_headline(line: CatchLine) -> str:
    """Return the people's answer and the model's in one sentence, for the picture."""
    if not (line.answer and line.models_said):
        return _("The model was wrong. People agree with the author.")
    values = {"answer": line.answer, "said": line.models_said[0]}
    # The picture has room for one line.
    return Truncator(_("People say %(answer)s, but the model said %(said)s.") % values).chars(66)


@require_POST
def change_sharing(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Store or withdraw the author's consent, and redirect to the catch or the person's work."""
    annotator = get_annotator(get_person(request))
    rows = Example.objects.select_related("round__task")
    example = get_object_or_404(rows, round__task__code=code, uuid=uuid, annotator=annotator)
    # Anything but a clear yes takes the page away.
    if request.POST.get("share") != "on":
        withdraw_sharing(annotator=annotator, example=example)
        messages.success(request, _("Page removed. Now only you can see this catch."))
        return redirect("me:work")
    # Only to give it: whoever may not see the task any more can still withdraw.
    require_permission(request.user, example.round.task, can_see)
    with show_as_message(request):
        share_catch(annotator=annotator, example=example)
        return redirect("catches:catch", code=code, uuid=uuid)
    return redirect("me:work")


def _find_non_sensitive_task(request: HttpRequest, code: str) -> Task:
    """Return the task. Raises Http404 for sensitive tasks, which have no wall."""
    task = find_task(request, code)
    if task.is_sensitive:
        raise Http404
    return task


def _find_shared_catch(task: Task, uuid: UUID) -> Example | None:
    """Return the catch if it is public and its author agreed to a page; else None."""
    example = select_public_catches(task).filter(uuid=uuid, shared_catch__isnull=False).first()
    if example is None or not has_standing_consent(example):
        return None
    return example


def _find_own_catch(request: HttpRequest, task: Task, uuid: UUID) -> Example | None:
    """Return the signed-in person's own shared catch, even if it is not public yet; else None."""
    if not request.user.is_authenticated:
        return None
    # Not only public ones: authors see what they agreed to before others do.
    own_examples = Example.objects.filter(
        round__task=task, uuid=uuid, annotator__user=get_person(request)
    )
    return load_lines(own_examples.filter(shared_catch__isnull=False)).first()


def _is_own(request: HttpRequest, example: Example) -> bool:
    if not request.user.is_authenticated or example.annotator is None:
        return False
    return example.annotator.user_id == get_person(request).pk
