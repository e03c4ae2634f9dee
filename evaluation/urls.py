"""Addresses of datasets and trainings."""

from django.urls import path

from evaluation import release_views, training_views, upload_views

app_name = "evaluation"
urlpatterns = [
    path("own/<slug:code>/rounds/<int:number>/release/", release_views.release, name="release"),
    path("own/<slug:code>/rounds/<int:number>/export.jsonl", release_views.export, name="export"),
    path("t/<slug:code>/rounds/<int:number>/data/", release_views.datasets, name="datasets"),
    path(
        "t/<slug:code>/rounds/<int:number>/data/<int:version>/<str:name>",
        release_views.dataset_file,
        name="dataset-file",
    ),
    path("own/<slug:code>/trainings/", training_views.trainings, name="trainings"),
    path("own/<slug:code>/train/", training_views.trainings, name="train"),
    path("own/<slug:code>/trainings/<int:pk>/", training_views.training, name="training"),
    path("uploads/", upload_views.uploads, name="uploads"),
    path("uploads/<uuid:pk>/", upload_views.upload, name="upload"),
]
