"""Addresses of what others say about examples, and of the numbers, below /api/v1/."""

from django.urls import path

from validation.api.statistics import RoundStatistics, TaskStatistics

urlpatterns = [
    path("tasks/<slug:code>/statistics/", TaskStatistics.as_view(), name="statistics"),
    path(
        "tasks/<slug:code>/rounds/<int:number>/statistics/",
        RoundStatistics.as_view(),
        name="round-statistics",
    ),
]
