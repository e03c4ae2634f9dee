"""Addresses of tasks, their configurations, rounds and contexts, below /api/v1/."""

from django.urls import URLPattern, URLResolver, include, path

from tasks.api.config import ConfigSchemaView, ConfigView, DynabenchConfigView
from tasks.api.contexts import ContextBatches, ContextBatchView, Contexts, ContextView
from tasks.api.generator import GeneratorView
from tasks.api.invitations import InvitationAcceptView, Invitations, InvitationView
from tasks.api.media import MediaFile, NewMedia
from tasks.api.members import Members, MemberView
from tasks.api.rounds import Rounds, RoundStateView, RoundView, TargetReplacementView
from tasks.api.target_models import (
    ServedModels,
    TargetModels,
    TargetModelView,
    TargetTestView,
)
from tasks.api.tasks import Targets, Tasks, TaskView

round_patterns: list[URLPattern] = [
    path("", RoundView.as_view(), name="round"),
    path("state/", RoundStateView.as_view(), name="round-state"),
    path("replace-target/", TargetReplacementView.as_view(), name="round-replace-target"),
    path("contexts/", Contexts.as_view(), name="contexts"),
    path("contexts/<int:pk>/", ContextView.as_view(), name="context"),
    path("context-batches/", ContextBatches.as_view(), name="context-batches"),
    path("context-batches/<int:pk>/", ContextBatchView.as_view(), name="context-batch"),
]
task_patterns: list[URLPattern | URLResolver] = [
    path("", TaskView.as_view(), name="task"),
    path("config/", ConfigView.as_view(), name="config"),
    path("config/dynabench/", DynabenchConfigView.as_view(), name="config-dynabench"),
    path("media/", NewMedia.as_view(), name="media"),
    path("media/<slug:digest>/", MediaFile.as_view(), name="media-file"),
    path("members/", Members.as_view(), name="members"),
    path("members/<int:pk>/", MemberView.as_view(), name="member"),
    path("invitations/", Invitations.as_view(), name="invitations"),
    path("invitations/<int:pk>/", InvitationView.as_view(), name="invitation"),
    path("generator/", GeneratorView.as_view(), name="generator"),
    path("target-models/", TargetModels.as_view(), name="target-models"),
    path("target-models/<int:pk>/", TargetModelView.as_view(), name="target-model"),
    path("target-models/<int:pk>/test/", TargetTestView.as_view(), name="target-test"),
    path("served-models/", ServedModels.as_view(), name="served-models"),
    path("targets/", Targets.as_view(), name="targets"),
    path("rounds/", Rounds.as_view(), name="rounds"),
    path("rounds/<int:number>/", include(round_patterns)),
]
urlpatterns = [
    path("tasks/", Tasks.as_view(), name="tasks"),
    path("tasks/<slug:code>/", include(task_patterns)),
    path("invitations/accept/", InvitationAcceptView.as_view(), name="invitation-accept"),
    path("config-schema/", ConfigSchemaView.as_view(), name="config-schema"),
]
