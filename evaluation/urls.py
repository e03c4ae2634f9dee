"""URLs of datasets, training runs, evaluation sets and submitted models."""

from django.urls import path

from evaluation.api.uploads import Uploads, UploadView
from evaluation.dataset_releases import views as release_views
from evaluation.judges.custom_metrics import views as metric_views
from evaluation.judges.llm_judges import views as judge_views
from evaluation.judges.paraphrases import views as paraphrase_views
from evaluation.runs.rulers import views as ruler_views
from evaluation.submissions import fooling, model_views, short_views, team_views
from evaluation.submissions import views as submission_views
from evaluation.submissions.own_workers import views as worker_views
from evaluation.test_sets import views as set_views
from evaluation.training import views as training_views

app_name = "evaluation"
SET_PATH = "own/<slug:code>/evaluation-sets/<slug:name>/"
urlpatterns = [
    path(
        "own/<slug:code>/rounds/<int:number>/release/", release_views.show_release, name="release"
    ),
    path(
        "own/<slug:code>/rounds/<int:number>/release/undo/",
        release_views.confirm_undo,
        name="release-undo",
    ),
    path(
        "own/<slug:code>/rounds/<int:number>/export.jsonl",
        release_views.export_round,
        name="export",
    ),
    path(
        "own/<slug:code>/rounds/<int:number>/export/<slug:tool>/",
        release_views.export_round_for_tool,
        name="export-for",
    ),
    path("t/<slug:code>/rounds/<int:number>/data/", release_views.show_datasets, name="datasets"),
    path(
        "t/<slug:code>/rounds/<int:number>/data/<int:version>.zip",
        release_views.stream_dataset_archive,
        name="dataset-archive",
    ),
    path(
        "t/<slug:code>/rounds/<int:number>/data/<int:version>/<str:name>",
        release_views.send_dataset_file,
        name="dataset-file",
    ),
    path("own/<slug:code>/trainings/", training_views.show_trainings, name="trainings"),
    path("own/<slug:code>/train/", training_views.show_trainings, name="train"),
    path("own/<slug:code>/trainings/<int:pk>/", training_views.show_training, name="training"),
    path(
        "own/<slug:code>/trainings/<int:pk>/chart/before-and-after.<slug:format>",
        training_views.download_training_chart,
        name="training-chart",
    ),
    path("own/<slug:code>/llm-judges/", judge_views.show_llm_judges, name="llm-judges"),
    path(
        "own/<slug:code>/llm-judges/<int:pk>/again/",
        judge_views.rerun_llm_judge,
        name="llm-judge-again",
    ),
    path(
        "own/<slug:code>/llm-judges/to-tune.jsonl",
        judge_views.export_tuning_examples,
        name="llm-judge-tuning",
    ),
    path("own/<slug:code>/metrics/", metric_views.show_metrics, name="metrics"),
    path(
        "t/<slug:code>/metrics/<slug:name>/v<int:number>/", metric_views.show_metric, name="metric"
    ),
    *(
        path(
            f"own/<slug:code>/metrics/<slug:name>/v<int:number>/{action}/",
            metric_views.change_metric,
            {"action": action},
            name=f"metric-{action}",
        )
        for action in metric_views.FUNCTION_BY_ACTION
    ),
    path("metrics/", metric_views.show_waiting_metrics, name="metrics-waiting"),
    path("own/<slug:code>/own-workers/", worker_views.show_own_workers, name="own-workers"),
    path(
        "own/<slug:code>/own-workers/<int:pk>/remove/",
        worker_views.remove_own_worker,
        name="own-worker-remove",
    ),
    path("own/<slug:code>/ruler/", ruler_views.show_ruler, name="ruler"),
    path("own/<slug:code>/ruler/retire/", ruler_views.retire, name="ruler-retire"),
    path("own/<slug:code>/ruler/runs/", ruler_views.request_missing, name="ruler-runs"),
    path("own/<slug:code>/evaluation-sets/", set_views.show_sets, name="sets"),
    path("own/<slug:code>/evaluation-sets/new/", set_views.add_set, name="set-new"),
    path("own/<slug:code>/evaluation-sets/<slug:name>/", set_views.show_set, name="set"),
    path(
        "own/<slug:code>/evaluation-sets/<slug:name>/new/",
        set_views.add_set_version,
        name="set-version",
    ),
    path(
        "own/<slug:code>/evaluation-sets/<slug:name>/take/",
        set_views.add_round_version,
        name="set-take",
    ),
    path(f"{SET_PATH}paraphrases/", paraphrase_views.show_paraphrases, name="paraphrases"),
    path(
        f"{SET_PATH}paraphrases/check/",
        paraphrase_views.store_paraphrase_decisions,
        name="paraphrases-check",
    ),
    path(f"{SET_PATH}paraphrases/take/", paraphrase_views.create_version, name="paraphrases-take"),
    path(
        "own/<slug:code>/evaluation-sets/<slug:name>/v<int:version>/inputs/",
        set_views.send_version_inputs,
        name="set-version-inputs",
    ),
    path(f"{SET_PATH}v<int:version>/items/", set_views.show_items, name="set-items"),
    # The API's views for the form's script; below /api/ their messages would be in English.
    path("uploads/", Uploads.as_view(versioning_class=None, schema=None), name="uploads"),
    path(
        "uploads/<uuid:pk>/", UploadView.as_view(versioning_class=None, schema=None), name="upload"
    ),
    path("t/<slug:code>/submit/", submission_views.show_submission_form, name="submit"),
    path("t/<slug:code>/sets/<int:pk>/inputs/", set_views.stream_open_inputs, name="set-inputs"),
    path("t/<slug:code>/models/", submission_views.list_models, name="models"),
    path("me/models/", submission_views.list_own_submissions, name="my-models"),
    path("me/teams/", team_views.show_teams, name="teams"),
    path(
        "me/teams/invitations/<int:pk>/accept/",
        team_views.answer_invitation,
        {"action": "accept"},
        name="invitation-accept",
    ),
    path(
        "me/teams/invitations/<int:pk>/decline/",
        team_views.answer_invitation,
        {"action": "decline"},
        name="invitation-decline",
    ),
    path("me/teams/<int:pk>/", team_views.show_team, name="team"),
    path("me/teams/<int:pk>/leave/", team_views.leave_own_team, name="team-leave"),
    *(
        path(
            f"me/teams/<int:pk>/members/<int:member>/{action}/",
            team_views.change_member,
            {"action": action},
            name=f"team-member-{action}",
        )
        for action in ("remove", "owner", "member")
    ),
    path("m/<uuid:pk>/", model_views.show_model, name="model"),
    path("m/<uuid:pk>/try/", fooling.fool_model, name="model-fool"),
    path("m/<uuid:pk>/try/start/", fooling.start_model, name="model-start"),
    path("m/<uuid:pk>/card/", model_views.change_card, name="model-card"),
    path("m/<uuid:pk>/anonymous/", model_views.set_anonymity, name="model-anonymous"),
    path("m/<uuid:pk>/embargo/", model_views.set_embargo, name="model-embargo"),
    path("m/<uuid:pk>/cap/", model_views.store_cap, name="model-cap"),
    path("m/<uuid:pk>/short/", short_views.show_short_evaluations, name="model-short"),
    path(
        "m/<uuid:pk>/short/<uuid:evaluation_id>/cancel/",
        short_views.cancel_short,
        name="model-short-cancel",
    ),
    path("m/<uuid:pk>/withdraw/", model_views.confirm_withdrawal, name="model-withdraw"),
    *(
        path(
            f"m/<uuid:pk>/{action}/",
            model_views.act_on_model,
            {"action": action},
            name=f"model-{action}",
        )
        for action in model_views.ACTIONS
    ),
    path("m/<uuid:pk>/runs/<uuid:run_id>/", model_views.show_run_log, name="run-log"),
    path("m/<uuid:pk>/runs/<uuid:run_id>/wrong/", model_views.show_wrong_answers, name="run-wrong"),
    path("m/<uuid:pk>/runs/<uuid:run_id>/again/", model_views.repeat_model_run, name="run-again"),
]
