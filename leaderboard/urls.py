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
    path("leaderboards/", snapshot_views.show_boards, name="index"),
    path("t/<slug:code>/leaderboard/", board_views.show_board, name="board"),
    path(
        "t/<slug:code>/leaderboard/chart/<slug:name>.<slug:format>",
        board_views.download_board_chart,
        name="board-chart",
    ),
    path("t/<slug:code>/leaderboard.json", follow_views.export_board_json, name="board-json"),
    path("t/<slug:code>/follow/", follow_views.follow_task, name="follow"),
    path("m/<uuid:pk>/badge.svg", follow_views.draw_badge, name="badge"),
    path("t/<slug:code>/arena/", arena_views.show_arena, name="arena"),
    path(
        "t/<slug:code>/arena/chart/strengths.<slug:format>",
        arena_views.download_arena_chart,
        name="arena-chart",
    ),
    path(
        "t/<slug:code>/conversations.jsonl", battle_views.export_conversations, name="conversations"
    ),
    path("t/<slug:code>/battle/", battle_views.run_battle, name="battle"),
    path("t/<slug:code>/battle/stream/", battle_views.stream_battle, name="battle-stream"),
    path("t/<slug:code>/battle/vote/", battle_views.store_vote, name="battle-vote"),
    path("t/<slug:code>/battle/consent/", battle_views.store_consent, name="battle-consent"),
    path(
        "t/<slug:code>/battle/<uuid:uuid>/", battle_views.show_finished_battle, name="battle-over"
    ),
    path(
        "t/<slug:code>/battle/<uuid:uuid>/leave/",
        battle_views.leave_conversation,
        name="battle-leave",
    ),
    path("t/<slug:code>/leaderboard/embed/", snapshot_views.show_embedded_board, name="embed"),
    path("t/<slug:code>/leaderboard/forks/", fork_views.show_forks, name="forks"),
    path(
        "t/<slug:code>/leaderboard/forks/<slug:name>/delete/",
        fork_views.delete_fork,
        name="fork-delete",
    ),
    path("t/<slug:code>/leaderboard/snapshots/", snapshot_views.show_snapshots, name="snapshots"),
    path(
        "t/<slug:code>/leaderboard/refreeze/", snapshot_views.refreeze_board_rates, name="refreeze"
    ),
    path(
        "t/<slug:code>/leaderboard/snapshots/<int:number>/",
        snapshot_views.show_snapshot,
        name="snapshot",
    ),
    path("t/<slug:code>/leaderboard/compare/", compare_views.show_comparison, name="compare"),
    path("t/<slug:code>/leaderboard/rounds/", rounds_views.show_rounds, name="rounds"),
    path(
        "t/<slug:code>/leaderboard/compare/chart/differences.<slug:format>",
        compare_views.download_comparison_chart,
        name="compare-chart",
    ),
    path(
        "t/<slug:code>/leaderboard/rounds/chart/<slug:name>.<slug:format>",
        rounds_views.download_rounds_chart,
        name="rounds-chart",
    ),
    path(
        "t/<slug:code>/leaderboard/training-dates/",
        rounds_views.show_training_dates,
        name="training-dates",
    ),
    path("t/<slug:code>/people/", views.show_people, name="people"),
    path("t/<slug:code>/people/people.csv", views.export_people_csv, name="people-csv"),
]
