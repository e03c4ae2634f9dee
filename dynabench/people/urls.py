"""The URLs of a person's own pages, `/me/…`."""

from django.urls import path
from django.views.generic import RedirectView

from dynabench.people import data, views

app_name = "me"
urlpatterns = [
    path("", views.show_my_work, name="work"),
    path("assignments/", views.show_my_assignments, name="duties"),
    # The address of this page in former releases.
    path("tasks/", RedirectView.as_view(pattern_name="manage"), name="tasks"),
    path("goal/", views.set_goal, name="goal"),
    path("examples/<uuid:uuid>/mend/", views.correct_example, name="mend"),
    path("data/", data.show_my_data, name="data"),
    path("data/download/", data.download_my_data, name="download"),
    path("data/delete/", data.delete_my_account, name="delete"),
]
