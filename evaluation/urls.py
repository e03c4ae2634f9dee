"""Addresses of datasets and trainings."""

from django.urls import path

from evaluation import training_views

app_name = "evaluation"
urlpatterns = [
    path("own/<slug:code>/trainings/", training_views.trainings, name="trainings"),
    path("own/<slug:code>/train/", training_views.trainings, name="train"),
    path("own/<slug:code>/trainings/<int:pk>/", training_views.training, name="training"),
]
