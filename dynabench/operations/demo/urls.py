"""The demo's page, `/demo/…`."""

from django.urls import path

from dynabench.operations.demo import views

app_name = "demo"
urlpatterns = [
    path("", views.demo, name="demo"),
    path("fill/", views.fill, name="fill"),
    path("stop/", views.stop, name="stop"),
    path("forget/", views.take_away, name="forget"),
]
