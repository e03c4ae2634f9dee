"""The URLs of the pages about a task's mixed rounds, `/own/<code>/rounds/<number>/arms/…`."""

from django.urls import path

from dynabench.mixed_rounds import own_views

app_name = "own-mixed"
urlpatterns = [
    path("", own_views.show_arms, name="arms"),
    path("start/", own_views.start_arms, name="start"),
    path("end/", own_views.end_arms, name="end"),
]
