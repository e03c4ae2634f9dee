"""The help pages, whose texts are in `docs/`."""

from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from core.text.docs import docs_names, docs_page, picture_path

GROUPS = (
    (_("For owners of tasks"), ("how-to-open-a-round", "how-to-release-a-round", "owners",
                                "task-config", "statistics", "targets", "datasets", "evaluation",
                                "arena", "campaigns", "communities")),
    (_("For people who write and judge"), ("how-to-write-and-judge", "annotators")),
    (_("For researchers"), ("first-model", "how-to-read-a-leaderboard", "researchers", "client",
                            "api", "boards")),
    (_("About this software"), ("states-roles-limits", "glossary", "privacy", "how-to-run-a-site",
                                "operators", "deploy", "developers")),
)  # fmt: skip
"""The pages that the list names, by readers; pages link the others."""


@login_not_required
@require_safe
def docs_list(request: HttpRequest) -> HttpResponse:
    """Show the list of help pages, grouped by reader."""
    pages_by_name = {name: docs_page(name) for name in docs_names()}
    groups = []
    for words, names in GROUPS:
        # An installation may lack some of them.
        groups.append(
            (words, [(name, pages_by_name[name]) for name in names if pages_by_name.get(name)])
        )
    return render(request, "docs/list.html", {"groups": groups})


@login_not_required
@require_safe
def docs_one(request: HttpRequest, name: str) -> HttpResponse:
    """Show one help page. Raises Http404 if this installation lacks it."""
    page = docs_page(name)
    if page is None:
        raise Http404
    return render(request, "docs/page.html", {"page": page})


@login_not_required
@require_safe
def docs_picture(request: HttpRequest, name: str) -> FileResponse:
    """Send a picture of the help pages. Raises Http404 if this installation lacks it."""
    path = picture_path(name)
    if path is None:
        raise Http404
    response = FileResponse(path.open("rb"))
    # A new release may bring a new picture under the same name.
    patch_cache_control(response, public=True, max_age=3600)
    return response
