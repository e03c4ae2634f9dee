"""Pages of a task's owners, `/own/<code>/…`."""

from django.urls import URLPattern, path, re_path

from dynabench.manage import (
    arena,
    config,
    config_history,
    dashboard,
    discussion,
    log,
    new,
    people,
    policy,
    reports,
    results,
    review,
    review_many,
    rounds,
)
from dynabench.manage.second_opinion import second_opinion
from dynabench.manage.setup import (
    assignments,
    choose_target,
    contexts,
    generator,
    health,
    invitations,
    members,
    passages,
    targets,
    tool_import,
)
from dynabench.manage.wizard import steps

app_name = "own"


def build_desk_urls(name: str) -> list[URLPattern]:
    """Return the URL patterns of the import pages of the desk with this name."""
    at, desk_values = f"rounds/<int:number>/{name}/", {"desk": name}
    return [
        path(at, contexts.choose_file, desk_values, name=name),
        path(f"{at}hub/", contexts.choose_of_hub, desk_values, name=f"{name}-hub"),
        path(f"{at}match/", contexts.match_columns, desk_values, name=f"{name}-match"),
        path(f"{at}store/", contexts.store_rows_seen, desk_values, name=f"{name}-store"),
    ]


urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("arena/", arena.arena, name="arena"),
    path("arena/voters/", arena.arena_voters, name="arena-voters"),
    path("arena/conversations/", arena.arena_conversations, name="arena-conversations"),
    path("arena/models/<int:pk>/", arena.arena_model, name="arena-model"),
    path("arena/gold/", arena.arena_gold, name="arena-gold"),
    path("arena/gold/<int:pk>/", arena.arena_gold_pair, name="arena-gold-pair"),
    path("arena/conversations/<int:pk>/", arena.arena_conversation, name="arena-conversation"),
    path("results/", results.results_page, name="results"),
    # The same view: htmx renews the tiles by this address, which no browser has in its history.
    path("tiles/", dashboard.dashboard, name="tiles"),
    path("rounds/<int:number>/policy/", policy.policy, name="policy"),
    path("rounds/<int:number>/second-opinion/", second_opinion, name="second-opinion"),
    path("annotators/", people.annotators, name="annotators"),
    re_path(
        r"^annotators/(?P<who>authors|validators)\.csv$", people.annotators_file, name="people-file"
    ),
    path("config/", config.config, name="config"),
    path("config/check/", config.config_check, name="config-check"),
    path("config/preview/", config.config_preview, name="config-preview"),
    path("config/dynabench/", config_history.config_dynabench, name="config-dynabench"),
    path("config/history/", config_history.config_history, name="config-history"),
    path("rounds/", rounds.rounds_page, name="rounds"),
    path("rounds/new/", rounds.round_create, name="round-create"),
    path("rounds/<int:number>/edit/", rounds.round_edit, name="round-edit"),
    path(
        "rounds/<int:number>/contexts/<int:pk>/undo/", contexts.contexts_undo, name="contexts-undo"
    ),
    path("rounds/<int:number>/contexts/all/", passages.contexts_all, name="contexts-all"),
    *build_desk_urls("contexts"),
    *build_desk_urls("rows"),
    *build_desk_urls("labelled"),
    path("rounds/<int:number>/delete/", rounds.round_delete, name="round-delete"),
    path("rounds/<int:number>/replace/", rounds.round_replace, name="round-replace"),
    path("rounds/<int:number>/stay/", rounds.round_stay, name="round-stay"),
    path("rounds/<int:number>/import/", tool_import.tool_import, name="tool-import"),
    path(
        "rounds/<int:number>/import/store/",
        tool_import.tool_import_store,
        name="tool-import-store",
    ),
    # After all other addresses of a round, because an action is any word.
    path("rounds/<int:number>/<slug:action>/", rounds.round_change, name="round-change"),
    path("reports/", reports.reports, name="reports"),
    path("reports/<int:pk>/", reports.report_resolve, name="report-resolve"),
    path("log/", log.log, name="log"),
    path("access/", members.access, name="access"),
    path("access/approval/", members.approval_ask, name="approval-ask"),
    path("access/blind/", members.blind, name="blind"),
    path("access/members/", members.member_add, name="member-add"),
    path("access/members/<int:pk>/", members.member_change, name="member-change"),
    path("access/assignments/", assignments.assignments_page, name="duties"),
    path("access/assignments/<int:pk>/", assignments.assignment_page, name="duty"),
    path("access/assignments/<int:pk>/end/", assignments.assignment_end, name="duty-end"),
    path("access/invitations/", invitations.invitations, name="invitations"),
    path(
        "access/invitations/<int:pk>/revoke/",
        invitations.invitation_revoke,
        name="invitation-revoke",
    ),
    path("targets/", targets.targets, name="targets"),
    path("targets/choose/", choose_target.target_choose, name="target-choose"),
    path("targets/<int:pk>/health/", health.target_health, name="target-health"),
    path("targets/new/", targets.target_add, name="target-add"),
    path("targets/<int:pk>/", targets.target_edit, name="target-edit"),
    path("targets/<int:pk>/test/", targets.target_test, name="target-test"),
    path("targets/<int:pk>/delete/", targets.target_delete, name="target-delete"),
    path("generator/", generator.generator, name="generator"),
    path("config/steps/", steps.draft_change, name="config-steps"),
    path("delete/", new.delete_task, name="delete"),
    path("review/", review.review_queue, name="review"),
    path("examples/<uuid:uuid>/", discussion.discussion, name="discussion"),
    path("comments/<int:pk>/", discussion.comment, name="comment"),
    # Before the addresses of one example.
    path("review/examples/", review_many.examples_page, name="review-examples"),
    path("review/<uuid:uuid>/", review.review_example, name="review-example"),
    path("review/<uuid:uuid>/next/", review.review_next, name="review-next"),
    path("review/<uuid:uuid>/undecide/", review.withdraw_decision, name="review-undecide"),
    path("review/<uuid:uuid>/gold/", review.gold_item, name="review-gold"),
    path("review/<uuid:uuid>/withdraw/", review.withdraw_page, name="review-withdraw"),
]
