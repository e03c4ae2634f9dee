"""Addresses of tasks, their configurations, rounds and contexts, below /api/v1/."""

from django.urls import path

from tasks.api.config import ConfigSchemaView, ConfigView
from tasks.api.contexts import Contexts, ContextView
from tasks.api.rounds import Rounds, RoundStateView, RoundView
from tasks.api.tasks import Groups, GroupView, Targets, Tasks, TaskView

urlpatterns = [
    path("tasks/", Tasks.as_view(), name="tasks"),
    path("tasks/<slug:code>/", TaskView.as_view(), name="task"),
    path("tasks/<slug:code>/config/", ConfigView.as_view(), name="config"),
    path("tasks/<slug:code>/targets/", Targets.as_view(), name="targets"),
    path("tasks/<slug:code>/rounds/", Rounds.as_view(), name="rounds"),
    path("tasks/<slug:code>/rounds/<int:number>/", RoundView.as_view(), name="round"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/state/", RoundStateView.as_view(), name="round-state"
    ),
    path("tasks/<slug:code>/rounds/<int:number>/contexts/", Contexts.as_view(), name="contexts"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/contexts/<int:pk>/",
        ContextView.as_view(),
        name="context",
    ),
    path("groups/", Groups.as_view(), name="groups"),
    path("groups/<slug:slug>/", GroupView.as_view(), name="group"),
    path("config-schema/", ConfigSchemaView.as_view(), name="config-schema"),
]
