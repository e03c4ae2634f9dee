"""URLs of datasets, evaluation sets, uploads, models and their evaluations, below /api/v1/."""

from django.urls import path

from evaluation.api import (
    chat,
    custom_metrics,
    datasets,
    items,
    llm_judges,
    models,
    near_copies,
    own_workers,
    releases,
    rulers,
    runs,
    sets,
    short_evaluations,
    teams,
    trainings,
    uploads,
)

TASK_PATH, SETS_PATH = "tasks/<slug:code>/", "tasks/<slug:code>/evaluation-sets/"
ROUND_PATH = "tasks/<slug:code>/rounds/<int:number>/"
LEASE_PATH = "leases/<uuid:token>/"
MODEL_PATH, TEAM_PATH = "models/<uuid:pk>/", "teams/<int:pk>/"
urlpatterns = [
    path(f"{TASK_PATH}datasets/", datasets.Datasets.as_view(), name="datasets"),
    path(f"{ROUND_PATH}datasets/", releases.Releases.as_view(), name="releases"),
    path(
        f"{ROUND_PATH}datasets/preview/", releases.ReleasePreview.as_view(), name="release-preview"
    ),
    path(f"{ROUND_PATH}datasets/<int:version>/", releases.Release.as_view(), name="release"),
    path(
        f"{ROUND_PATH}datasets/<int:version>/files/<str:name>",
        datasets.DatasetFileView.as_view(),
        name="dataset-file",
    ),
    path(f"{ROUND_PATH}items/", items.RoundItems.as_view(), name="round-items"),
    path(f"{ROUND_PATH}export/", datasets.RoundExport.as_view(), name="export"),
    path(f"{TASK_PATH}trainings/", trainings.Trainings.as_view(), name="trainings"),
    path(f"{TASK_PATH}trainings/<int:pk>/", trainings.TrainingView.as_view(), name="training"),
    path(
        f"{TASK_PATH}trainings/<int:pk>/target/",
        trainings.TrainedTarget.as_view(),
        name="training-target",
    ),
    path(f"{TASK_PATH}ruler/", rulers.RulerView.as_view(), name="ruler"),
    path(f"{TASK_PATH}ruler/runs/", rulers.RulerRuns.as_view(), name="ruler-runs"),
    path(SETS_PATH, sets.EvaluationSets.as_view(), name="evaluation-sets"),
    path(f"{SETS_PATH}<slug:name>/", sets.EvaluationSetView.as_view(), name="evaluation-set"),
    path(
        f"{SETS_PATH}<slug:name>/versions/",
        sets.EvaluationSetVersions.as_view(),
        name="evaluation-set-versions",
    ),
    path(
        f"{SETS_PATH}<slug:name>/versions/<int:version>/items/",
        items.EvaluationSetItems.as_view(),
        name="evaluation-set-items",
    ),
    path(
        f"{SETS_PATH}<slug:name>/versions/<int:version>/languages/",
        items.EvaluationSetLanguages.as_view(),
        name="evaluation-set-languages",
    ),
    path(f"{SETS_PATH}<slug:name>/take/", sets.TakeRoundView.as_view(), name="evaluation-set-take"),
    path(
        f"{SETS_PATH}<slug:name>/inputs/",
        sets.EvaluationSetInputs.as_view(),
        name="evaluation-set-inputs",
    ),
    path(f"{TASK_PATH}check-inputs/", sets.CheckInputs.as_view(), name="check-inputs"),
    path(f"{TASK_PATH}quota/", models.QuotaView.as_view(), name="quota"),
    path(f"{TASK_PATH}models/", models.TaskModels.as_view(), name="models"),
    path(f"{TASK_PATH}models/estimate/", chat.EstimateView.as_view(), name="models-estimate"),
    path("me/models/", models.MyModels.as_view(), name="my-models"),
    path(MODEL_PATH, models.ModelView.as_view(), name="model"),
    *(
        path(f"{MODEL_PATH}{action}/", view.as_view(), name=f"model-{action}")
        for action, view in models.ACTIONS.items()
    ),
    path(f"{MODEL_PATH}anonymous/", models.AnonymityView.as_view(), name="model-anonymous"),
    path(f"{MODEL_PATH}embargo/", models.EmbargoView.as_view(), name="model-embargo"),
    path(f"{MODEL_PATH}cap/", chat.CapView.as_view(), name="model-cap"),
    path(
        f"{MODEL_PATH}short-evaluations/",
        short_evaluations.ShortEvaluations.as_view(),
        name="short-evaluations",
    ),
    path(
        f"{MODEL_PATH}short-evaluations/<uuid:evaluation>/",
        short_evaluations.ShortEvaluationView.as_view(),
        name="short-evaluation",
    ),
    path(
        f"{MODEL_PATH}short-evaluations/<uuid:evaluation>/cancel/",
        short_evaluations.CancelShortEvaluation.as_view(),
        name="short-evaluation-cancel",
    ),
    path(f"{MODEL_PATH}runs/", runs.Runs.as_view(), name="runs"),
    path(f"{MODEL_PATH}runs/<uuid:run>/", runs.RunView.as_view(), name="run"),
    path(f"{MODEL_PATH}runs/<uuid:run>/again/", runs.RepeatRunView.as_view(), name="run-again"),
    path(f"{MODEL_PATH}runs/<uuid:run>/wrong/", runs.WrongAnswersView.as_view(), name="run-wrong"),
    path(f"{TASK_PATH}metrics/", custom_metrics.CustomMetrics.as_view(), name="custom-metrics"),
    path(f"{TASK_PATH}llm-judges/", llm_judges.LlmJudges.as_view(), name="llm-judges"),
    path(f"{MODEL_PATH}llm-scores/", llm_judges.ModelLlmScores.as_view(), name="llm-scores"),
    path(f"{MODEL_PATH}near-copies/", near_copies.NearCopies.as_view(), name="near-copies"),
    path(f"{MODEL_PATH}scores/", runs.Scores.as_view(), name="scores"),
    path(
        f"{MODEL_PATH}predictions/<slug:name>/", runs.PredictionsView.as_view(), name="predictions"
    ),
    path("teams/", teams.Teams.as_view(), name="teams"),
    path(TEAM_PATH, teams.TeamView.as_view(), name="team"),
    path(f"{TEAM_PATH}leave/", teams.LeaveTeamView.as_view(), name="team-leave"),
    path(f"{TEAM_PATH}models/", teams.TeamModels.as_view(), name="team-models"),
    path(f"{TEAM_PATH}members/", teams.TeamMembers.as_view(), name="team-members"),
    path(f"{TEAM_PATH}members/<int:member>/", teams.TeamMemberView.as_view(), name="team-member"),
    path("me/invitations/", teams.TeamInvitations.as_view(), name="invitations"),
    path(
        "me/invitations/<int:pk>/accept/",
        teams.TeamInvitationAccept.as_view(),
        name="invitation-accept",
    ),
    path(
        "me/invitations/<int:pk>/decline/",
        teams.TeamInvitationDecline.as_view(),
        name="invitation-decline",
    ),
    path(f"{TASK_PATH}own-workers/", own_workers.OwnWorkers.as_view(), name="own-workers"),
    path(
        f"{TASK_PATH}own-workers/<int:pk>/", own_workers.OwnWorkerView.as_view(), name="own-worker"
    ),
    path(f"{TASK_PATH}leases/", own_workers.TakeLeaseView.as_view(), name="lease-take"),
    path(f"{LEASE_PATH}keep/", own_workers.LeaseBeat.as_view(), name="lease-keep"),
    path(f"{LEASE_PATH}inputs/", own_workers.LeaseInputs.as_view(), name="lease-inputs"),
    path(f"{LEASE_PATH}model/", own_workers.LeaseModel.as_view(), name="lease-model"),
    path(f"{LEASE_PATH}answers/", own_workers.LeaseAnswers.as_view(), name="lease-answers"),
    path("uploads/", uploads.Uploads.as_view(), name="uploads"),
    path("uploads/<uuid:pk>/", uploads.UploadView.as_view(), name="upload"),
]
