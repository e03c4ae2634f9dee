"""The leaderboard's addresses below /api/v1/."""

from django.urls import path

from leaderboard.api import results

urlpatterns = [
    path("models/<uuid:pk>/results/", results.ResultsView.as_view(), name="results"),
]
