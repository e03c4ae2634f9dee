"""Addresses of data, sets, uploads, models and their evaluations, below /api/v1/."""

from django.urls import path

from evaluation.api import (
    chat,
    custom_metrics,
    datasets,
    llm_judges,
    models,
    near_copies,
    own_workers,
    releases,
    runs,
    sets,
    teams,
    trainings,
    uploads,
)

TASK, SETS = "tasks/<slug:code>/", "tasks/<slug:code>/evaluation-sets/"
ROUND = "tasks/<slug:code>/rounds/<int:number>/"
LEASE = "leases/<uuid:token>/"
MODEL, TEAM = "models/<uuid:pk>/", "teams/<int:pk>/"
urlpatterns = [
    path(f"{TASK}datasets/", datasets.Datasets.as_view(), name="datasets"),
    path(f"{ROUND}datasets/", releases.Releases.as_view(), name="releases"),
    path(f"{ROUND}datasets/preview/", releases.ReleasePreview.as_view(), name="release-preview"),
    path(f"{ROUND}datasets/<int:version>/", releases.Release.as_view(), name="release"),
    path(
        f"{ROUND}datasets/<int:version>/files/<str:name>",
        datasets.DatasetFileView.as_view(),
        name="dataset-file",
    ),
    path(f"{ROUND}export/", datasets.RoundExport.as_view(), name="export"),
    path(f"{TASK}trainings/", trainings.Trainings.as_view(), name="trainings"),
    path(f"{TASK}trainings/<int:pk>/", trainings.TrainingView.as_view(), name="training"),
    path(
        f"{TASK}trainings/<int:pk>/target/",
        trainings.TrainedTarget.as_view(),
        name="training-target",
    ),
    path(SETS, sets.EvaluationSets.as_view(), name="evaluation-sets"),
    path(f"{SETS}<slug:name>/", sets.EvaluationSetView.as_view(), name="evaluation-set"),
    path(f"{SETS}<slug:name>/versions/", sets.Versions.as_view(), name="evaluation-set-versions"),
    path(f"{SETS}<slug:name>/take/", sets.TakeRound.as_view(), name="evaluation-set-take"),
    path(f"{SETS}<slug:name>/inputs/", sets.Inputs.as_view(), name="evaluation-set-inputs"),
    path(f"{TASK}check-inputs/", sets.CheckInputs.as_view(), name="check-inputs"),
    path(f"{TASK}quota/", models.QuotaView.as_view(), name="quota"),
    path(f"{TASK}models/", models.TaskModels.as_view(), name="models"),
    path(f"{TASK}models/estimate/", chat.EstimateView.as_view(), name="models-estimate"),
    path("me/models/", models.MyModels.as_view(), name="my-models"),
    path(MODEL, models.ModelView.as_view(), name="model"),
    *(
        path(f"{MODEL}{action}/", view.as_view(), name=f"model-{action}")
        for action, view in models.ACTIONS.items()
    ),
    path(f"{MODEL}anonymous/", models.AnonymousView.as_view(), name="model-anonymous"),
    path(f"{MODEL}embargo/", models.EmbargoView.as_view(), name="model-embargo"),
    path(f"{MODEL}cap/", chat.CapView.as_view(), name="model-cap"),
    path(f"{MODEL}runs/", runs.Runs.as_view(), name="runs"),
    path(f"{MODEL}runs/<uuid:run>/", runs.RunView.as_view(), name="run"),
    path(f"{MODEL}runs/<uuid:run>/again/", runs.RunAgain.as_view(), name="run-again"),
    path(f"{MODEL}runs/<uuid:run>/wrong/", runs.WrongView.as_view(), name="run-wrong"),
    path(f"{TASK}metrics/", custom_metrics.CustomMetrics.as_view(), name="custom-metrics"),
    path(f"{TASK}llm-judges/", llm_judges.LlmJudges.as_view(), name="llm-judges"),
    path(f"{MODEL}llm-scores/", llm_judges.ModelLlmScores.as_view(), name="llm-scores"),
    path(f"{MODEL}near-copies/", near_copies.NearCopies.as_view(), name="near-copies"),
    path(f"{MODEL}scores/", runs.Scores.as_view(), name="scores"),
    path(f"{MODEL}predictions/<slug:name>/", runs.Predictions.as_view(), name="predictions"),
    path("teams/", teams.Teams.as_view(), name="teams"),
    path(TEAM, teams.TeamView.as_view(), name="team"),
    path(f"{TEAM}leave/", teams.TeamLeave.as_view(), name="team-leave"),
    path(f"{TEAM}models/", teams.TeamModels.as_view(), name="team-models"),
    path(f"{TEAM}members/", teams.TeamMembers.as_view(), name="team-members"),
    path(f"{TEAM}members/<int:member>/", teams.TeamMemberView.as_view(), name="team-member"),
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
    path(f"{TASK}own-workers/", own_workers.OwnWorkers.as_view(), name="own-workers"),
    path(f"{TASK}own-workers/<int:pk>/", own_workers.OwnWorkerView.as_view(), name="own-worker"),
    path(f"{TASK}leases/", own_workers.TakeLease.as_view(), name="lease-take"),
    path(f"{LEASE}keep/", own_workers.LeaseBeat.as_view(), name="lease-keep"),
    path(f"{LEASE}inputs/", own_workers.LeaseInputs.as_view(), name="lease-inputs"),
    path(f"{LEASE}model/", own_workers.LeaseModel.as_view(), name="lease-model"),
    path(f"{LEASE}answers/", own_workers.LeaseAnswers.as_view(), name="lease-answers"),
    path("uploads/", uploads.Uploads.as_view(), name="uploads"),
    path("uploads/<uuid:pk>/", uploads.UploadView.as_view(), name="upload"),
]
