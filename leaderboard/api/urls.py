"""The leaderboard's addresses below /api/v1/."""

from django.urls import path

from leaderboard.api.arenas import ArenaView
from leaderboard.api.boards import LeaderboardView, RoundsMatrixView, TrainingDatesView
from leaderboard.api.comparisons import CompareView
from leaderboard.api.following import FollowView
from leaderboard.api.forks import Forks, ForkView
from leaderboard.api.people import PeopleView
from leaderboard.api.results import ResultsView
from leaderboard.api.snapshots import RefreezeView, Snapshots, SnapshotView

BOARD = "tasks/<slug:code>/leaderboard/"
urlpatterns = [
    path("models/<uuid:pk>/results/", ResultsView.as_view(), name="results"),
    path("tasks/<slug:code>/arena/", ArenaView.as_view(), name="arena"),
    path("tasks/<slug:code>/follow/", FollowView.as_view(), name="follow"),
    path(BOARD, LeaderboardView.as_view(), name="leaderboard"),
    path(f"{BOARD}compare/", CompareView.as_view(), name="leaderboard-compare"),
    path(f"{BOARD}rounds/", RoundsMatrixView.as_view(), name="leaderboard-rounds"),
    path(f"{BOARD}training-dates/", TrainingDatesView.as_view(), name="leaderboard-training-dates"),
    path(f"{BOARD}people/", PeopleView.as_view(), name="leaderboard-people"),
    path(f"{BOARD}forks/", Forks.as_view(), name="forks"),
    path(f"{BOARD}forks/<slug:name>/", ForkView.as_view(), name="fork"),
    path(f"{BOARD}refreeze/", RefreezeView.as_view(), name="refreeze"),
    path(f"{BOARD}snapshots/", Snapshots.as_view(), name="snapshots"),
    path(f"{BOARD}snapshots/<int:number>/", SnapshotView.as_view(), name="snapshot"),
]
