from django.urls import path

from leaderboard.arena import views as arena_views
from leaderboard.arena.battles import views as battle_views
from leaderboard.board import views as board_views
from leaderboard.board.forks import views as fork_views
from leaderboard.compare import views as compare_views
from leaderboard.people import views
from leaderboard.rounds import views as rounds_views
from leaderboard.rounds.following import views as follow_views
from leaderboard.snapshots import views as snapshot_views

app_name = "leaderboard"
urlpatterns = [
    path("leaderboards/", snapshot_views.index, name="index"),
    path("t/<slug:code>/leaderboard/", board_views.board, name="board"),
    path("t/<slug:code>/leaderboard.json", follow_views.board_json, name="board-json"),
    path("t/<slug:code>/follow/", follow_views.follow, name="follow"),
    path("m/<uuid:pk>/badge.svg", follow_views.badge, name="badge"),
    path("t/<slug:code>/arena/", arena_views.arena, name="arena"),
    path("t/<slug:code>/conversations.jsonl", battle_views.conversations, name="conversations"),
    path("t/<slug:code>/battle/", battle_views.battle, name="battle"),
    path("t/<slug:code>/battle/stream/", battle_views.battle_stream, name="battle-stream"),
    path("t/<slug:code>/battle/vote/", battle_views.vote, name="battle-vote"),
    path("t/<slug:code>/battle/consent/", battle_views.consent, name="battle-consent"),
    path("t/<slug:code>/battle/<uuid:uuid>/", battle_views.battle_over, name="battle-over"),
    path(
        "t/<slug:code>/battle/<uuid:uuid>/leave/",
        battle_views.leave_conversation,
        name="battle-leave",
    ),
    path("t/<slug:code>/leaderboard/embed/", snapshot_views.embed, name="embed"),
    path("t/<slug:code>/leaderboard/forks/", fork_views.forks, name="forks"),
    path(
        "t/<slug:code>/leaderboard/forks/<slug:name>/delete/",
        fork_views.fork_delete,
        name="fork-delete",
    ),
    path("t/<slug:code>/leaderboard/snapshots/", snapshot_views.snapshots, name="snapshots"),
    path("t/<slug:code>/leaderboard/refreeze/", snapshot_views.refreeze, name="refreeze"),
    path(
        "t/<slug:code>/leaderboard/snapshots/<int:number>/",
        snapshot_views.snapshot,
        name="snapshot",
    ),
    path("t/<slug:code>/leaderboard/compare/", compare_views.comparison, name="compare"),
    path("t/<slug:code>/leaderboard/rounds/", rounds_views.rounds_page, name="rounds"),
    path(
        "t/<slug:code>/leaderboard/training-dates/",
        rounds_views.training_dates,
        name="training-dates",
    ),
    path("t/<slug:code>/people/", views.people, name="people"),
    path("t/<slug:code>/people/people.csv", views.people_csv, name="people-csv"),
]
