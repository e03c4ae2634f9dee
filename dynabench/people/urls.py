"""Addresses of a person's own pages, `/me/…`."""

from django.urls import path

from dynabench.people import data, views

app_name = "me"
urlpatterns = [
    path("", views.work, name="work"),
    path("assignments/", views.duties, name="duties"),
    path("tasks/", views.run_tasks, name="tasks"),
    path("goal/", views.goal, name="goal"),
    path("examples/<uuid:uuid>/mend/", views.mend, name="mend"),
    path("data/", data.data, name="data"),
    path("data/download/", data.download, name="download"),
    path("data/delete/", data.delete, name="delete"),
]
