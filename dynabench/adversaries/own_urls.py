"""The URLs of the pages about a task's adversaries, `/own/<code>/adversaries/…`."""

from django.urls import path

from dynabench.adversaries import container_views, own_views

app_name = "own-adversaries"
urlpatterns = [
    path("", own_views.list_adversaries, name="adversaries"),
    path("ready/", own_views.start_ready, name="ready"),
    path("transfer/", own_views.start_transfer, name="transfer"),
    path("transfer/stop/", own_views.stop_transfer, name="stop-transfer"),
    path("new/<slug:kind>/", own_views.show_new_adversary, name="make"),
    path("<int:pk>/", own_views.show_adversary, name="adversary"),
    path("<int:pk>/start/", own_views.start_adversary, name="start"),
    path("<int:pk>/stop/", own_views.stop_adversary, name="stop"),
    path("<int:pk>/schedule/", own_views.change_schedule, name="schedule"),
    path("<int:pk>/image/", container_views.show_image, name="image"),
    path(
        "<int:pk>/image/<int:number>/allow/",
        container_views.allow_brought_image,
        name="allow-image",
    ),
    path("<int:pk>/retire/", own_views.retire_own_adversary, name="retire"),
]
