"""The pages that panel participants may open, and how the task of each page is found.

Pages that are not listed are closed to them, so new pages have to be added here.
The services check `annotation.open_round.may_work_now`, too.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Exists, Model, OuterRef

from annotation.models import Assignment, Attempt, Example
from core.accounts.models import User
from dynabench.campaigns.models import WORKING_STATES, Pause, Place
from leaderboard.models import Battle
from tasks.models import Context, Task


class TaskLookup(NamedTuple):
    """The way from a page's address to its task.

    key: the address parameter that identifies a row of `model`; path: the lookup from that
    row to its task.
    """

    model: type[Model]
    key: str
    path: str


CODE = TaskLookup(Task, "code", "pk")
ATTEMPT = TaskLookup(Attempt, "uuid", "assignment__round__task")
ASSIGNMENT = TaskLookup(Assignment, "pk", "round__task")
CONTEXT = TaskLookup(Context, "pk", "round__task")
EXAMPLE = TaskLookup(Example, "uuid", "round__task")
BATTLE = TaskLookup(Battle, "uuid", "task")
PAGES_WITHOUT_TASK = frozenset(
    [
        *("set_language", "help", "privacy", "news", "media"),
        *("personal", "personal-delete", "personal-download"),
        # It leads to the next part of a study, whose person was drawn into several.
        "studies:arrive",
    ]
)
"""Pages that are always open. `media` itself checks who may see a file's task."""
TASK_LOOKUP_BY_PAGE = {
    "annotation:gate": CODE,
    "annotation:care": CODE,
    "annotation:seen": CODE,
    "annotation:write": CODE,
    "annotation:write-next": CODE,
    "annotation:talk": CODE,
    "annotation:support": CODE,
    "annotation:try-out": CODE,
    "annotation:keep": CODE,
    "annotation:talk-stream": ASSIGNMENT,
    "annotation:draft": ASSIGNMENT,
    "annotation:attempt": ATTEMPT,
    "annotation:attempt-model": ATTEMPT,
    "annotation:attempt-answer": ATTEMPT,
    "annotation:attempt-why": ATTEMPT,
    "annotation:attempt-saliency": ATTEMPT,
    "annotation:attempt-retract": ATTEMPT,
    "annotation:context-report": CONTEXT,
    "validation:judge": CODE,
    "validation:skip": CODE,
    "validation:flag": CODE,
    "validation:refresher": CODE,
    "validation:undo": EXAMPLE,
    "validation:after": EXAMPLE,
    "leaderboard:battle": CODE,
    "leaderboard:battle-stream": CODE,
    "leaderboard:battle-vote": CODE,
    "leaderboard:battle-consent": CODE,
    "leaderboard:battle-over": BATTLE,
    "leaderboard:battle-leave": BATTLE,
}


def may_open_page(name: str, parameters: Mapping[str, Any], user: User) -> bool:
    """Return whether a panel participant may open the page with this URL name.

    A task's page is open while the participant works in a study of the task and is not
    paused. parameters: the parameters in the page's URL. One query for a task's page.
    """
    if name in PAGES_WITHOUT_TASK or name.startswith("campaigns:"):
        return True
    lookup = TASK_LOOKUP_BY_PAGE.get(name)
    if lookup is None:
        return False
    # By the address's parameter, whichever row the page is about.
    rows = lookup.model._default_manager.filter(**{lookup.key: parameters[lookup.key]})
    open_pauses = Pause.objects.filter(place=OuterRef("pk"), lifted_at=None)
    own_places = Place.objects.filter(annotator__user=user, state__in=WORKING_STATES)
    # Subqueries, so that one query decides on each request of such a person.
    not_paused = own_places.filter(~Exists(open_pauses))
    return not_paused.filter(campaign__task__in=rows.values(lookup.path)).exists()
