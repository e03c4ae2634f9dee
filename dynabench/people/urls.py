"""Addresses of a person's own pages, `/me/…`."""

from django.urls import path

from dynabench.people import data, views

app_name = "me"
urlpatterns = [
    path("", views.my_work, name="work"),
    path("assignments/", views.my_assignments, name="duties"),
    path("tasks/", views.run_tasks, name="tasks"),
    path("goal/", views.set_goal, name="goal"),
    path("examples/<uuid:uuid>/mend/", views.correct_example, name="mend"),
    path("data/", data.my_data, name="data"),
    path("data/download/", data.download_my_data, name="download"),
    path("data/delete/", data.delete_my_account, name="delete"),
]
