"""The URLs of the demo's page, `/demo/…`."""

from django.urls import path

from dynabench.operations.demo import views

app_name = "demo"
urlpatterns = [
    path("", views.show_demo_page, name="demo"),
    path("fill/", views.fill_demo, name="fill"),
    path("stop/", views.stop_filling, name="stop"),
    path("forget/", views.delete_demo, name="forget"),
]
