"""Addresses of tasks, their configurations, rounds and contexts, below /api/v1/."""

from django.urls import path

from tasks.api.config import ConfigSchemaView, ConfigView
from tasks.api.contexts import ContextBatches, ContextBatchView, Contexts, ContextView
from tasks.api.generator import GeneratorView
from tasks.api.members import Members, MemberView
from tasks.api.rounds import Rounds, RoundStateView, RoundView, TargetReplacementView
from tasks.api.target_models import TargetModels, TargetModelView, TargetTestView
from tasks.api.tasks import Groups, GroupView, Targets, Tasks, TaskView

urlpatterns = [
    path("tasks/", Tasks.as_view(), name="tasks"),
    path("tasks/<slug:code>/", TaskView.as_view(), name="task"),
    path("tasks/<slug:code>/config/", ConfigView.as_view(), name="config"),
    path("tasks/<slug:code>/members/", Members.as_view(), name="members"),
    path("tasks/<slug:code>/members/<int:pk>/", MemberView.as_view(), name="member"),
    path("tasks/<slug:code>/generator/", GeneratorView.as_view(), name="generator"),
    path("tasks/<slug:code>/target-models/", TargetModels.as_view(), name="target-models"),
    path(
        "tasks/<slug:code>/target-models/<int:pk>/", TargetModelView.as_view(), name="target-model"
    ),
    path(
        "tasks/<slug:code>/target-models/<int:pk>/test/",
        TargetTestView.as_view(),
        name="target-test",
    ),
    path("tasks/<slug:code>/targets/", Targets.as_view(), name="targets"),
    path("tasks/<slug:code>/rounds/", Rounds.as_view(), name="rounds"),
    path("tasks/<slug:code>/rounds/<int:number>/", RoundView.as_view(), name="round"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/state/", RoundStateView.as_view(), name="round-state"
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/replace-target/",
        TargetReplacementView.as_view(),
        name="round-replace-target",
    ),
    path("tasks/<slug:code>/rounds/<int:number>/contexts/", Contexts.as_view(), name="contexts"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/contexts/<int:pk>/",
        ContextView.as_view(),
        name="context",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/context-batches/",
        ContextBatches.as_view(),
        name="context-batches",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/context-batches/<int:pk>/",
        ContextBatchView.as_view(),
        name="context-batch",
    ),
    path("groups/", Groups.as_view(), name="groups"),
    path("groups/<slug:slug>/", GroupView.as_view(), name="group"),
    path("config-schema/", ConfigSchemaView.as_view(), name="config-schema"),
]
