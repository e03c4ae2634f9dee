"""The URLs of a task owners' pages, `/own/<code>/…`."""

from django.urls import URLPattern, path, re_path

from dynabench.manage import (
    arena,
    arena_judges,
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
    vote_draw,
)
from dynabench.manage.second_opinion import show_second_opinion
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


def build_import_urls(name: str) -> list[URLPattern]:
    """Return the URL patterns of the import pages for one of ROW_IMPORTS."""
    round_path, import_values = f"rounds/<int:number>/{name}/", {"import_kind": name}
    return [
        path(round_path, contexts.choose_file, import_values, name=name),
        path(f"{round_path}hub/", contexts.choose_hub_dataset, import_values, name=f"{name}-hub"),
        path(f"{round_path}match/", contexts.match_columns, import_values, name=f"{name}-match"),
        path(
            f"{round_path}store/",
            contexts.store_previewed_rows,
            import_values,
            name=f"{name}-store",
        ),
    ]


urlpatterns = [
    path("", dashboard.show_dashboard, name="dashboard"),
    path("arena/", arena.show_arena, name="arena"),
    path("arena/voters/", arena.show_arena_voters, name="arena-voters"),
    path("arena/conversations/", arena.show_arena_conversations, name="arena-conversations"),
    path("arena/judges/", arena_judges.show_arena_judges, name="arena-judges"),
    path("arena/judges/<int:pk>/", arena_judges.rerun_arena_judge, name="arena-judge"),
    path("arena/judges/<int:pk>/shown/", arena_judges.switch_arena_judge, name="arena-judge-shown"),
    path("arena/models/<int:pk>/", arena.switch_arena_model, name="arena-model"),
    path("arena/gold/", arena.create_gold_pair, name="arena-gold"),
    path("arena/gold/<int:pk>/", arena.switch_gold_pair, name="arena-gold-pair"),
    path("arena/conversations/<int:pk>/", arena.decide_conversation, name="arena-conversation"),
    path("results/", results.show_results, name="results"),
    path("chart/<slug:name>.<slug:format>", dashboard.send_dashboard_chart, name="dashboard-chart"),
    # The same view: htmx renews the tiles by this address, which no browser has in its history.
    path("tiles/", dashboard.show_dashboard, name="tiles"),
    path("rounds/<int:number>/policy/", policy.show_policy, name="policy"),
    path("rounds/<int:number>/sample/", vote_draw.show_vote_draw, name="vote-draw"),
    path("rounds/<int:number>/second-opinion/", show_second_opinion, name="second-opinion"),
    path("annotators/", people.show_annotators, name="annotators"),
    re_path(
        r"^annotators/(?P<who>authors|validators)\.csv$",
        people.export_annotators,
        name="people-file",
    ),
    path("config/", config.show_config, name="config"),
    path("config/check/", config.check_posted_config, name="config-check"),
    path("config/preview/", config.preview_config, name="config-preview"),
    path("config/dynabench/", config_history.export_config_for_dynabench, name="config-dynabench"),
    path("config/history/", config_history.show_config_history, name="config-history"),
    path("texts/", passages.redirect_to_texts, name="texts"),
    path("rounds/", rounds.show_rounds, name="rounds"),
    path("rounds/new/", rounds.plan_new_round, name="round-create"),
    path("rounds/<int:number>/edit/", rounds.edit_round_plan, name="round-edit"),
    path(
        "rounds/<int:number>/contexts/<int:pk>/undo/",
        contexts.undo_context_import,
        name="contexts-undo",
    ),
    path("rounds/<int:number>/contexts/all/", passages.show_all_contexts, name="contexts-all"),
    *build_import_urls("contexts"),
    *build_import_urls("rows"),
    *build_import_urls("labelled"),
    path("rounds/<int:number>/delete/", rounds.delete_empty_round, name="round-delete"),
    path("rounds/<int:number>/replace/", rounds.replace_round_target, name="round-replace"),
    path("rounds/<int:number>/stay/", rounds.cancel_round_opening, name="round-stay"),
    path("rounds/<int:number>/import/", tool_import.show_tool_import, name="tool-import"),
    path(
        "rounds/<int:number>/import/store/",
        tool_import.store_tool_import,
        name="tool-import-store",
    ),
    # After all other addresses of a round, because an action is any word.
    path("rounds/<int:number>/<slug:action>/", rounds.change_round_state, name="round-change"),
    path("reports/", reports.show_reports, name="reports"),
    path("reports/<int:pk>/", reports.resolve_context_report, name="report-resolve"),
    path("log/", log.show_log, name="log"),
    path("access/", members.show_access, name="access"),
    path("access/approval/", members.send_approval_request, name="approval-ask"),
    path("access/blind/", members.switch_blind_judging, name="blind"),
    path("access/members/", members.add_task_member, name="member-add"),
    path("access/members/<int:pk>/", members.change_task_member, name="member-change"),
    path("access/assignments/", assignments.show_assignments, name="duties"),
    path("access/assignments/<int:pk>/", assignments.show_assignment, name="duty"),
    path("access/assignments/<int:pk>/end/", assignments.end_task_assignment, name="duty-end"),
    path("access/invitations/", invitations.show_invitations, name="invitations"),
    path(
        "access/invitations/<int:pk>/revoke/",
        invitations.revoke_task_invitation,
        name="invitation-revoke",
    ),
    path("targets/", targets.show_targets, name="targets"),
    path("targets/choose/", choose_target.choose_new_target, name="target-choose"),
    path("targets/<int:pk>/health/", health.show_target_health, name="target-health"),
    path("targets/new/", targets.add_new_target, name="target-add"),
    path("targets/<int:pk>/", targets.edit_target, name="target-edit"),
    path("targets/<int:pk>/test/", targets.show_target_test, name="target-test"),
    path("targets/<int:pk>/delete/", targets.delete_unused_target, name="target-delete"),
    path("generator/", generator.show_generator, name="generator"),
    path("config/steps/", steps.draft_next_config, name="config-steps"),
    path("delete/", new.delete_task, name="delete"),
    path("review/", review.show_review_queue, name="review"),
    path("examples/<uuid:uuid>/", discussion.show_discussion, name="discussion"),
    path("comments/<int:pk>/", discussion.change_own_comment, name="comment"),
    # Before the addresses of one example.
    path("review/examples/", review_many.show_examples, name="review-examples"),
    path("review/<uuid:uuid>/", review.review_example, name="review-example"),
    path("review/<uuid:uuid>/next/", review.skip_reviewed_example, name="review-next"),
    path("review/<uuid:uuid>/undecide/", review.withdraw_decision, name="review-undecide"),
    path("review/<uuid:uuid>/gold/", review.switch_gold_item, name="review-gold"),
    path("review/<uuid:uuid>/withdraw/", review.show_withdrawal_form, name="review-withdraw"),
]
