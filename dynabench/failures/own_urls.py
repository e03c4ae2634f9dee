"""The URLs of the pages about a task's weak spots, `/own/<code>/weak-spots/…`."""

from django.urls import path

from dynabench.failures import own_views

app_name = "own-failures"
urlpatterns = [
    path("", own_views.show_weak_spots, name="weak-spots"),
    path("challenge/", own_views.show_new_challenge, name="challenge"),
]
