"""The URL at which people arrive for a study, `/s/<slug>/`."""

from django.urls import path

from dynabench.studies import views

app_name = "studies"
urlpatterns = [path("", views.show_study_arrival, name="arrive")]
