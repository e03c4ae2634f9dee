"""The documentation at `/docs/`, rendered from the files in `docs/`."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from core.text.docs import DocsPage, find_picture_path, get_docs_page, list_docs_names
from core.text.docs_search import cut_question, search_pages

GROUPS = (
    (_("Write and judge"), "pencil", ("how-to-write-and-judge", "annotators", "glossary",
                                      "privacy")),
    (_("Run a task"), "people", ("how-to-open-a-round", "owners", "task-config",
                                 "how-to-release-a-round", "benchmark-in-git",
                                 "states-roles-limits", "targets", "starter-models", "datasets",
                                 "traces", "criteria", "campaigns",
                                 "how-to-set-up-a-study", "studies", "adversaries",
                                 "communities", "arena", "demo")),
    (_("Research"), "model", ("first-model", "how-to-read-a-leaderboard", "researchers",
                              "evaluation", "statistics", "ruler", "leaderboard-walk", "boards",
                              "client", "api", "mcp")),
    (_("Run a site"), "eye", ("how-to-run-a-site", "operators", "configuration", "deploy",
                              "runbook", "cluster", "threat-model", "licences")),
    (_("Develop Dynabench"), "text", ("developers", "architecture", "extending", "where-is",
                                      "testing", "locking")),
)  # fmt: skip
"""The pages, grouped by kind of reader, in reading order, with the icon of each group."""
FIRST_PAGES = 3
"""The number of a group's pages that the contents introduce by a sentence."""


@dataclass(frozen=True)
class DocsGroup:
    """The pages for one kind of reader, as (name, page) pairs."""

    title: str | Promise
    icon: str
    pages: list[tuple[str, DocsPage]]

    @property
    def first_pages(self) -> list[tuple[str, DocsPage]]:
        """Return the pages to begin with."""
        # In reading order, so the first ones lead into the others.
        return self.pages[:FIRST_PAGES]

    @property
    def other_pages(self) -> list[tuple[str, DocsPage]]:
        """Return the pages to look things up in."""
        return self.pages[FIRST_PAGES:]


@login_not_required
@require_safe
def show_docs_list(request: HttpRequest) -> HttpResponse:
    """Show the contents of the documentation, or the search results for `?q=`."""
    groups = _list_groups()
    question = cut_question(request.GET.get("q", ""))
    values = {"groups": groups, "question": question}
    if question:
        values["results"] = search_pages(_list_pages(groups), question)
    return render(request, "docs/list.html", values)


@login_not_required
@require_safe
def show_docs_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one page, with links to its neighbours. Raises Http404 if this installation lacks it."""
    page = get_docs_page(name)
    if page is None:
        raise Http404
    groups = _list_groups()
    pages = _list_pages(groups)
    page_index = [other_name for other_name, _page in pages].index(name)
    values = {
        "name": name,
        "page": page,
        "groups": groups,
        "headings": [section for section in page.sections if section.title and section.level == 2],
        "previous": pages[page_index - 1] if page_index else None,
        "next": pages[page_index + 1] if page_index + 1 < len(pages) else None,
    }
    return render(request, "docs/page.html", values)


@login_not_required
@require_safe
def send_docs_picture(request: HttpRequest, name: str) -> FileResponse:
    """Send a picture of the documentation. Raises Http404 if this installation lacks it."""
    path = find_picture_path(name)
    if path is None:
        raise Http404
    response = FileResponse(path.open("rb"))
    # A new release may bring a new picture under the same name.
    patch_cache_control(response, public=True, max_age=3600)
    return response


def _list_groups() -> list[DocsGroup]:
    """Return the pages of this installation, grouped by kind of reader.

    Pages that GROUPS does not list belong to the last group.
    """
    pages_by_name: dict[str, DocsPage] = {}
    for name in list_docs_names():
        page = get_docs_page(name)
        if page:
            pages_by_name[name] = page
    groups = []
    for title, icon, names in GROUPS:
        # An installation may lack some of them.
        pages = [(name, pages_by_name.pop(name)) for name in names if name in pages_by_name]
        groups.append(DocsGroup(title, icon, pages))
    # A page that no group names yet is found in the last one.
    groups[-1].pages.extend(pages_by_name.items())
    return [group for group in groups if group.pages]


def _list_pages(groups: list[DocsGroup]) -> list[tuple[str, DocsPage]]:
    """Return the pages of all groups in their order."""
    pages: list[tuple[str, DocsPage]] = []
    for group in groups:
        pages.extend(group.pages)
    return pages
