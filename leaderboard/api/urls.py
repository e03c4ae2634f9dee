"""The leaderboard's addresses below /api/v1/."""

from django.urls import path

from leaderboard.api.arena_judges import ArenaJudges
from leaderboard.api.arenas import ArenaView
from leaderboard.api.boards import (
    LeaderboardView,
    OneRulerView,
    RoundsMatrixView,
    TrainingDatesView,
)
from leaderboard.api.comparisons import CompareView
from leaderboard.api.evidence import (
    EvidenceAnswersView,
    EvidenceLabelsView,
    EvidencePerturbedView,
    EvidenceView,
)
from leaderboard.api.following import FollowView
from leaderboard.api.forks import Forks, ForkView
from leaderboard.api.people import PeopleView
from leaderboard.api.results import ResultsView
from leaderboard.api.snapshots import RefreezeView, Snapshots, SnapshotView

BOARD_PATH = "tasks/<slug:code>/leaderboard/"
SNAPSHOT_PATH = f"{BOARD_PATH}snapshots/<int:number>/"
urlpatterns = [
    path("models/<uuid:pk>/results/", ResultsView.as_view(), name="results"),
    path("tasks/<slug:code>/arena/", ArenaView.as_view(), name="arena"),
    path("tasks/<slug:code>/arena/judges/", ArenaJudges.as_view(), name="arena-judges"),
    path("tasks/<slug:code>/follow/", FollowView.as_view(), name="follow"),
    path(BOARD_PATH, LeaderboardView.as_view(), name="leaderboard"),
    path(f"{BOARD_PATH}compare/", CompareView.as_view(), name="leaderboard-compare"),
    path(f"{BOARD_PATH}rounds/", RoundsMatrixView.as_view(), name="leaderboard-rounds"),
    path(f"{BOARD_PATH}ruler/", OneRulerView.as_view(), name="leaderboard-ruler"),
    path(
        f"{BOARD_PATH}training-dates/",
        TrainingDatesView.as_view(),
        name="leaderboard-training-dates",
    ),
    path(f"{BOARD_PATH}people/", PeopleView.as_view(), name="leaderboard-people"),
    path(f"{BOARD_PATH}forks/", Forks.as_view(), name="forks"),
    path(f"{BOARD_PATH}forks/<slug:name>/", ForkView.as_view(), name="fork"),
    path(f"{BOARD_PATH}refreeze/", RefreezeView.as_view(), name="refreeze"),
    path(f"{BOARD_PATH}snapshots/", Snapshots.as_view(), name="snapshots"),
    path(SNAPSHOT_PATH, SnapshotView.as_view(), name="snapshot"),
    path(f"{SNAPSHOT_PATH}evidence/", EvidenceView.as_view(), name="snapshot-evidence"),
    path(
        f"{SNAPSHOT_PATH}evidence/<slug:name>/labels/",
        EvidenceLabelsView.as_view(),
        name="snapshot-labels",
    ),
    path(
        f"{SNAPSHOT_PATH}evidence/<slug:name>/answers/",
        EvidenceAnswersView.as_view(),
        name="snapshot-answers",
    ),
    path(
        f"{SNAPSHOT_PATH}evidence/<slug:name>/perturbed/",
        EvidencePerturbedView.as_view(),
        name="snapshot-perturbed",
    ),
]
