"""Addresses of writing and of reports about contexts, below /api/v1/."""

from django.urls import path

from annotation.api.examples import AuthorAnswerView, MendView, RetractView, WhyView
from annotation.api.machine_share import RoundMachineShareView
from annotation.api.reports import NewReportView, ReportsView, ResolveView
from annotation.api.talk import ConversationView, TakeBackView
from annotation.api.writing import AssignmentView, AttemptView, GateView, NewExampleView

urlpatterns = [
    path("tasks/<slug:code>/gate/", GateView.as_view(), name="gate"),
    path("tasks/<slug:code>/assignment/", AssignmentView.as_view(), name="assignment"),
    path("assignments/<int:pk>/examples/", NewExampleView.as_view(), name="new-example"),
    path("assignments/<int:pk>/conversation/", ConversationView.as_view(), name="conversation"),
    path("assignments/<int:pk>/conversation/back/", TakeBackView.as_view(), name="take-back"),
    path("attempts/<uuid:uuid>/", AttemptView.as_view(), name="attempt"),
    path("examples/<uuid:uuid>/retract/", RetractView.as_view(), name="example-retract"),
    path("examples/<uuid:uuid>/mend/", MendView.as_view(), name="example-mend"),
    path("examples/<uuid:uuid>/why/", WhyView.as_view(), name="example-why"),
    path("examples/<uuid:uuid>/answer/", AuthorAnswerView.as_view(), name="example-answer"),
    path("contexts/<int:pk>/report/", NewReportView.as_view(), name="context-report"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/machine-share/",
        RoundMachineShareView.as_view(),
        name="machine-share",
    ),
    path("tasks/<slug:code>/reports/", ReportsView.as_view(), name="reports"),
    path("reports/<int:pk>/resolve/", ResolveView.as_view(), name="report-resolve"),
]
