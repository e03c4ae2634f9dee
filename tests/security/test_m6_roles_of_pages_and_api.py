"""An operation of the API is refused to exactly the roles to which its page is.

Each operation about a task has a line in the table: the page that does the same, or why there is
none. A new operation without a line fails.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

from django.test import Client
from rest_framework.test import APIClient

from tests.support.api_routes import address_of as api_address
from tests.support.api_routes import (
    routes,
    world,  # noqa: F401
)
from tests.support.page_routes import address_of as page_address
from tests.support.page_routes import with_pages
from tests.support.roles import ROLES, answer, members_of

TASK, ROUND = "tasks/<slug:code>/", "tasks/<slug:code>/rounds/<int:number>/"
T, OWN = "t/<slug:code>/", "own/<slug:code>/"
A_ROUND = f"{OWN}rounds/<int:number>/"
SETS, SET = f"{TASK}evaluation-sets/", f"{TASK}evaluation-sets/<slug:name>/"
BOARD, EXAMPLE, REVIEW = f"{TASK}leaderboard/", "examples/<uuid:uuid>/", f"{OWN}review/<uuid:uuid>/"

SAME = {
    f"GET {TASK}": T,
    f"PATCH {TASK}": f"POST {OWN}access/",
    f"GET {TASK}config/": f"{OWN}config/",
    f"PUT {TASK}config/": f"POST {OWN}config/check/",
    f"GET {TASK}config/dynabench/": f"{OWN}config/dynabench/",
    f"GET {TASK}config/versions/": f"{OWN}config/history/",
    f"GET {TASK}config/versions/<int:number>/": f"{OWN}config/history/",
    f"GET {TASK}config/versions/<int:number>/compare/": f"{OWN}config/history/",
    f"POST {TASK}config/versions/<int:number>/return/": f"POST {OWN}config/check/",
    f"GET {TASK}members/": f"{OWN}access/",
    f"POST {TASK}members/": f"POST {OWN}access/members/",
    f"PATCH {TASK}members/<int:pk>/": f"POST {OWN}access/members/<int:pk>/",
    f"DELETE {TASK}members/<int:pk>/": f"POST {OWN}access/members/<int:pk>/",
    f"GET {TASK}approval/": f"POST {OWN}access/approval/",
    f"POST {TASK}approval/": f"POST {OWN}access/approval/",
    f"GET {TASK}invitations/": f"{OWN}access/invitations/",
    f"POST {TASK}invitations/": f"{OWN}access/invitations/",
    f"DELETE {TASK}invitations/<int:pk>/": f"POST {OWN}access/invitations/<int:pk>/revoke/",
    f"GET {TASK}duties/": f"{OWN}access/assignments/",
    f"POST {TASK}duties/": f"POST {OWN}access/assignments/",
    f"PUT {TASK}duties/<int:pk>/": f"POST {OWN}access/assignments/<int:pk>/",
    f"DELETE {TASK}duties/<int:pk>/": f"POST {OWN}access/assignments/<int:pk>/end/",
    f"GET {TASK}generator/": f"{OWN}generator/",
    f"PUT {TASK}generator/": f"{OWN}generator/",
    f"DELETE {TASK}generator/": f"{OWN}generator/",
    f"GET {TASK}target-models/": f"{OWN}targets/",
    f"POST {TASK}target-models/": f"{OWN}targets/new/",
    f"PATCH {TASK}target-models/<int:pk>/": f"{OWN}targets/<int:pk>/",
    f"POST {TASK}target-models/<int:pk>/test/": f"{OWN}targets/<int:pk>/test/",
    f"GET {TASK}served-models/": f"{OWN}targets/choose/",
    f"GET {TASK}targets/": T,
    f"GET {TASK}rounds/": f"{T}rounds/",
    f"POST {TASK}rounds/": f"{OWN}rounds/new/",
    f"GET {ROUND}": f"{T}rounds/",
    f"PATCH {ROUND}": f"{A_ROUND}edit/",
    f"POST {ROUND}state/": f"POST {A_ROUND}<slug:action>/",
    f"POST {ROUND}replace-target/": f"{A_ROUND}replace/",
    f"GET {ROUND}contexts/": f"{A_ROUND}contexts/all/",
    f"POST {ROUND}contexts/": f"POST {A_ROUND}contexts/store/",
    f"PATCH {ROUND}contexts/<int:pk>/": f"POST {A_ROUND}contexts/all/",
    f"GET {ROUND}context-batches/": f"{A_ROUND}contexts/",
    f"DELETE {ROUND}context-batches/<int:pk>/": f"POST {A_ROUND}contexts/<int:pk>/undo/",
    f"GET {ROUND}examples/": f"{A_ROUND}export.jsonl",
    f"GET {ROUND}validations/": f"{A_ROUND}export.jsonl",
    f"GET {ROUND}steps/": f"{A_ROUND}export.jsonl",
    f"GET {ROUND}items/": REVIEW,
    f"GET {ROUND}export/": f"{A_ROUND}export.jsonl",
    f"GET {ROUND}activity/": OWN,
    f"GET {ROUND}second-opinion/": f"{A_ROUND}second-opinion/",
    f"GET {ROUND}policy/": f"{A_ROUND}policy/",
    f"PUT {ROUND}policy/": f"POST {A_ROUND}policy/",
    f"GET {ROUND}vote-draw/": f"{A_ROUND}sample/",
    f"PUT {ROUND}vote-draw/": f"POST {A_ROUND}sample/",
    f"GET {ROUND}vote-plan/": f"{A_ROUND}sample/",
    f"GET {ROUND}statistics/": f"{T}rounds/",
    f"GET {TASK}statistics/": f"{T}numbers.json",
    f"GET {TASK}datasets/": f"{T}rounds/<int:number>/data/",
    f"GET {ROUND}datasets/": f"{A_ROUND}release/",
    f"GET {ROUND}datasets/preview/": f"{A_ROUND}release/",
    f"POST {ROUND}datasets/": f"POST {A_ROUND}release/",
    f"DELETE {ROUND}datasets/<int:version>/": f"POST {A_ROUND}release/undo/",
    f"GET {ROUND}datasets/<int:version>/files/<str:name>": (
        f"{T}rounds/<int:number>/data/<int:version>/<str:name>"
    ),
    f"GET {TASK}reports/": f"{OWN}reports/",
    "POST reports/<int:pk>/resolve/": f"POST {OWN}reports/<int:pk>/",
    f"GET {TASK}authors/": f"{OWN}annotators/",
    f"GET {TASK}validators/": f"{OWN}annotators/",
    f"GET {TASK}review/": f"{OWN}review/",
    f"GET {TASK}review/examples/": f"{OWN}review/examples/",
    f"GET {TASK}review/matched/": f"{OWN}review/examples/",
    f"POST {TASK}review/acts/": f"POST {OWN}review/examples/",
    f"DELETE {TASK}review/acts/<slug:run>/": f"POST {OWN}review/examples/",
    f"GET {TASK}gold/": f"{OWN}review/",
    f"POST {EXAMPLE}decision/": f"POST {REVIEW}",
    f"DELETE {EXAMPLE}decision/": f"POST {REVIEW}undecide/",
    f"GET {EXAMPLE}decisions/": REVIEW,
    f"POST {EXAMPLE}withdraw/": f"{REVIEW}withdraw/",
    f"PUT {EXAMPLE}gold/": f"POST {REVIEW}gold/",
    f"DELETE {EXAMPLE}gold/": f"POST {REVIEW}gold/",
    f"POST {TASK}gate/": f"POST {T}gate/",
    f"POST {TASK}assignment/": f"{T}write/",
    f"POST {TASK}media/": f"POST {T}write/",
    f"POST {EXAMPLE}validations/": f"POST {T}judge/",
    f"GET {TASK}judging/refresher/": f"{T}judge/",
    f"POST {TASK}judging/refresher/": f"POST {T}judge/refresher/",
    f"GET {TASK}trainings/": f"{OWN}trainings/",
    f"POST {TASK}trainings/": f"{OWN}train/",
    f"GET {TASK}trainings/<int:pk>/": f"{OWN}trainings/<int:pk>/",
    f"POST {TASK}trainings/<int:pk>/target/": f"{OWN}trainings/<int:pk>/",
    f"GET {SETS}": f"{T}data/",
    f"POST {SETS}": f"POST {OWN}evaluation-sets/new/",
    f"GET {SET}": f"{T}data/",
    f"PATCH {SET}": f"{OWN}evaluation-sets/<slug:name>/",
    f"POST {SET}versions/": f"POST {OWN}evaluation-sets/<slug:name>/new/",
    f"POST {SET}take/": f"POST {OWN}evaluation-sets/<slug:name>/take/",
    f"GET {SET}inputs/": f"{T}sets/<int:pk>/inputs/",
    f"GET {SET}versions/<int:version>/items/": (
        f"{OWN}evaluation-sets/<slug:name>/v<int:version>/items/"
    ),
    f"GET {SET}versions/<int:version>/languages/": (
        f"{OWN}evaluation-sets/<slug:name>/v<int:version>/items/"
    ),
    f"GET {TASK}ruler/": f"{OWN}ruler/",
    f"POST {TASK}ruler/": f"POST {OWN}ruler/retire/",
    f"DELETE {TASK}ruler/": f"POST {OWN}ruler/retire/",
    f"POST {TASK}ruler/runs/": f"POST {OWN}ruler/runs/",
    f"GET {TASK}check-inputs/": f"{T}submit/",
    f"GET {TASK}quota/": f"{T}submit/",
    f"GET {TASK}models/": f"{T}models/",
    f"POST {TASK}models/": f"{T}submit/",
    f"POST {TASK}models/estimate/": f"{T}submit/",
    f"GET {TASK}llm-judges/": f"{OWN}llm-judges/",
    f"GET {TASK}weak-spots/": f"{OWN}weak-spots/",
    f"GET {TASK}adversaries/": f"{OWN}adversaries/",
    f"POST {TASK}adversaries/": f"POST {OWN}adversaries/new/<slug:kind>/",
    f"GET {TASK}adversaries/<int:pk>/": f"{OWN}adversaries/<int:pk>/",
    f"PATCH {TASK}adversaries/<int:pk>/": f"POST {OWN}adversaries/<int:pk>/schedule/",
    f"DELETE {TASK}adversaries/<int:pk>/": f"POST {OWN}adversaries/<int:pk>/retire/",
    f"GET {TASK}adversaries/<int:pk>/runs/": f"{OWN}adversaries/<int:pk>/",
    f"POST {TASK}adversaries/<int:pk>/runs/": f"POST {OWN}adversaries/<int:pk>/start/",
    f"DELETE {TASK}adversaries/<int:pk>/runs/": f"POST {OWN}adversaries/<int:pk>/stop/",
    f"GET {TASK}adversaries/<int:pk>/tries/": f"{OWN}adversaries/<int:pk>/",
    f"POST {TASK}adversaries/ready/": f"POST {OWN}adversaries/ready/",
    f"GET {TASK}adversaries/board/": f"{OWN}adversaries/",
    f"POST {TASK}adversaries/transfer/": f"POST {OWN}adversaries/transfer/",
    f"DELETE {TASK}adversaries/transfer/": f"POST {OWN}adversaries/transfer/stop/",
    f"GET {ROUND}arms/": f"{A_ROUND}arms/",
    f"PUT {ROUND}arms/": f"POST {A_ROUND}arms/",
    f"POST {ROUND}arms/start/": f"POST {A_ROUND}arms/start/",
    f"DELETE {ROUND}arms/": f"POST {A_ROUND}arms/end/",
    f"POST {TASK}adversaries/<int:pk>/claim/": f"{OWN}adversaries/<int:pk>/",
    f"GET {TASK}adversaries/<int:pk>/images/": f"{OWN}adversaries/<int:pk>/image/",
    f"POST {TASK}adversaries/<int:pk>/images/": f"POST {OWN}adversaries/<int:pk>/image/",
    f"POST {TASK}adversaries/<int:pk>/images/<int:number>/allow/": (
        f"POST {OWN}adversaries/<int:pk>/image/<int:number>/allow/"
    ),
    f"GET {TASK}own-workers/": f"{OWN}own-workers/",
    f"POST {TASK}own-workers/": f"POST {OWN}own-workers/",
    f"DELETE {TASK}own-workers/<int:pk>/": f"POST {OWN}own-workers/<int:pk>/remove/",
    f"GET {TASK}catches/": f"{T}catches/",
    f"GET {TASK}follow/": T,
    f"POST {TASK}follow/": f"POST {T}follow/",
    f"GET {BOARD}": f"{T}leaderboard/",
    f"GET {BOARD}compare/": f"{T}leaderboard/compare/",
    f"GET {BOARD}rounds/": f"{T}leaderboard/rounds/",
    f"GET {BOARD}ruler/": f"{T}leaderboard/",
    f"GET {BOARD}training-dates/": f"{T}leaderboard/training-dates/",
    f"GET {BOARD}people/": f"{T}people/",
    f"GET {BOARD}forks/": f"{T}leaderboard/forks/",
    f"POST {BOARD}forks/": f"POST {T}leaderboard/forks/",
    f"DELETE {BOARD}forks/<slug:name>/": f"POST {T}leaderboard/forks/<slug:name>/delete/",
    f"POST {BOARD}refreeze/": f"POST {T}leaderboard/refreeze/",
    f"GET {BOARD}snapshots/": f"{T}leaderboard/snapshots/",
    f"POST {BOARD}snapshots/": f"POST {T}leaderboard/snapshots/",
    f"GET {BOARD}snapshots/<int:number>/": f"{T}leaderboard/snapshots/<int:number>/",
    f"GET {TASK}campaigns/": f"{OWN}campaigns/",
    f"GET {TASK}campaigns/<slug:slug>/": f"{OWN}campaigns/<slug:slug>/",
    f"GET {TASK}campaigns/<slug:slug>/bonus-preview/": f"{OWN}campaigns/<slug:slug>/bonus/",
    f"PATCH {TASK}campaigns/<slug:slug>/": f"POST {OWN}campaigns/<slug:slug>/change/<slug:step>/",
    f"GET {TASK}studies/": f"{OWN}studies/",
    f"POST {TASK}studies/": f"POST {OWN}studies/new/",
    f"POST {TASK}study-plans/": f"POST {OWN}studies/new/",
    f"GET {TASK}studies/<slug:slug>/": f"{OWN}studies/<slug:slug>/",
    f"PATCH {TASK}studies/<slug:slug>/": f"POST {OWN}studies/<slug:slug>/change/",
    f"GET {TASK}studies/<slug:slug>/report/": f"{OWN}studies/<slug:slug>/report.json",
    f"GET {TASK}studies/<slug:slug>/power/": f"{OWN}studies/<slug:slug>/",
    f"POST {TASK}studies/<slug:slug>/power/": f"POST {OWN}studies/<slug:slug>/power/",
    f"GET {TASK}studies/<slug:slug>/pilot/": f"{OWN}studies/<slug:slug>/",
    f"POST {TASK}studies/<slug:slug>/pilot/": f"POST {OWN}studies/<slug:slug>/pilot/",
    f"DELETE {TASK}studies/<slug:slug>/pilot/": f"POST {OWN}studies/<slug:slug>/pilot/",
    f"POST {TASK}studies/<slug:slug>/open/": f"POST {OWN}studies/<slug:slug>/open/",
}
"""The operation, and its page: GET unless it says more."""

OTHERWISE = {
    f"POST {TASK}judging/next/": "readers get the page, which tells them why they do not judge",
    f"GET {TASK}media/<slug:digest>/": "the page asks the file, not the task",
    f"GET {TASK}next-round/": "who may read labels; the page of rounds leaves it out for others",
    f"GET {ROUND}machine-share/": "owners; the page of results leaves it out for others",
    f"GET {TASK}metrics/": "everybody who sees the task; the page is of owners' code",
    f"GET {TASK}arena/": "the task is no arena",
    f"GET {TASK}arena/judges/": "the task is no arena",
    **{
        f"GET {BOARD}snapshots/<int:number>/evidence/{one}": "who may download data of the task"
        for one in ("", *(f"<slug:name>/{file}/" for file in ("labels", "answers", "perturbed")))
    },
    f"POST {TASK}leases/": "a machine of somebody who may evaluate there, which has no page",
    f"GET {EXAMPLE}": "others are told that it is not there, on the page that it is not theirs",
    f"POST {EXAMPLE}skip/": "who has it to judge",
    f"GET {EXAMPLE}validations/mine/": "one's own vote",
    f"PATCH {EXAMPLE}validations/mine/": "one's own vote",
    f"DELETE {EXAMPLE}validations/mine/": "one's own vote",
    f"PUT {TASK}catches/<uuid:uuid>/sharing/": "its author",
    f"DELETE {TASK}catches/<uuid:uuid>/sharing/": "its author",
    **{f"POST {EXAMPLE}{one}/": "its author" for one in ("retract", "mend", "why", "answer")},
}
OF_A_TASK = re.compile(r"(tasks|examples|reports)/<")


def refused_to(members, method, address):
    """The roles that are told that theirs does not reach."""
    return {one for one in ROLES if answer(members[one], method, address).status_code == 403}


def test_each_operation_has_a_line_and_each_line_an_operation():
    found = {f"{method} {route}" for method, route in routes() if OF_A_TASK.match(route)}
    assert found == SAME.keys() | OTHERWISE.keys()
    assert not SAME.keys() & OTHERWISE.keys()


def test_the_same_roles_are_refused_by_the_page_and_by_the_api(world):
    pages = members_of(world, Client)
    api = {}
    for role in ROLES:
        api[role] = APIClient()
        api[role].cookies = pages[role].cookies
    paged = with_pages(world)
    differ = {}
    for operation, page in SAME.items():
        method, route = operation.split(" ", 1)
        by_api = refused_to(api, method, api_address(world, route))
        kind, _, place = page.rpartition(" ")
        by_page = refused_to(pages, kind or "GET", page_address(paged, place))
        assert "owner" not in by_api | by_page, operation
        if by_api != by_page:
            differ[operation] = (sorted(by_api), sorted(by_page))
    assert not differ
