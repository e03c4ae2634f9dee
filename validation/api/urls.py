"""The API's URLs of judging, decisions and statistics, below /api/v1/."""

from django.urls import path

from validation.api.assignments import AssignmentsView, AssignmentView, OwnAssignmentsView
from validation.api.bulk import BulkActionsView, BulkActionView, MatchedView, ReviewedExamples
from validation.api.decisions import DecisionView, PastDecisions, ReviewView, WithdrawView
from validation.api.examples import (
    ExampleView,
    OwnExamples,
    RoundExamples,
    RoundSteps,
    RoundValidations,
)
from validation.api.gold import GoldItems, GoldView
from validation.api.judging import NextView, OwnVoteView, RefresherView, SkipView, VotesView
from validation.api.policies import PolicyView
from validation.api.statistics import RoundStatistics, TaskStatistics
from validation.api.vote_draws import VoteDrawView, VotePlanView

urlpatterns = [
    path("tasks/<slug:code>/statistics/", TaskStatistics.as_view(), name="statistics"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/statistics/",
        RoundStatistics.as_view(),
        name="round-statistics",
    ),
    path("me/duties/", OwnAssignmentsView.as_view(), name="own-duties"),
    path("tasks/<slug:code>/duties/", AssignmentsView.as_view(), name="duties"),
    path("tasks/<slug:code>/duties/<int:pk>/", AssignmentView.as_view(), name="duty"),
    path("me/examples/", OwnExamples.as_view(), name="own-examples"),
    path("examples/<uuid:uuid>/", ExampleView.as_view(), name="example"),
    path("examples/<uuid:uuid>/skip/", SkipView.as_view(), name="example-skip"),
    path("examples/<uuid:uuid>/validations/", VotesView.as_view(), name="example-validations"),
    path("examples/<uuid:uuid>/validations/mine/", OwnVoteView.as_view(), name="own-validation"),
    path("tasks/<slug:code>/judging/next/", NextView.as_view(), name="judging-next"),
    path("tasks/<slug:code>/judging/refresher/", RefresherView.as_view(), name="judging-refresher"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/examples/",
        RoundExamples.as_view(),
        name="round-examples",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/validations/",
        RoundValidations.as_view(),
        name="round-validations",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/steps/",
        RoundSteps.as_view(),
        name="round-steps",
    ),
    path("tasks/<slug:code>/review/", ReviewView.as_view(), name="review"),
    path("tasks/<slug:code>/review/examples/", ReviewedExamples.as_view(), name="review-examples"),
    path("tasks/<slug:code>/review/matched/", MatchedView.as_view(), name="review-matched"),
    path("tasks/<slug:code>/review/acts/", BulkActionsView.as_view(), name="review-acts"),
    path("tasks/<slug:code>/review/acts/<slug:run>/", BulkActionView.as_view(), name="review-act"),
    path("examples/<uuid:uuid>/decision/", DecisionView.as_view(), name="example-decision"),
    path("examples/<uuid:uuid>/decisions/", PastDecisions.as_view(), name="example-decisions"),
    path("examples/<uuid:uuid>/withdraw/", WithdrawView.as_view(), name="example-withdraw"),
    path("examples/<uuid:uuid>/gold/", GoldView.as_view(), name="example-gold"),
    path("tasks/<slug:code>/gold/", GoldItems.as_view(), name="gold"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/policy/",
        PolicyView.as_view(),
        name="round-policy",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/vote-draw/",
        VoteDrawView.as_view(),
        name="round-vote-draw",
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/vote-plan/",
        VotePlanView.as_view(),
        name="round-vote-plan",
    ),
]
