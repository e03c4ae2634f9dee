"""The URLs of a task's catches, `/t/…/catches/`."""

from django.urls import path

from dynabench.catches import views

app_name = "catches"
urlpatterns = [
    path("", views.show_wall, name="wall"),
    path("<uuid:uuid>/", views.show_catch, name="catch"),
    path("<uuid:uuid>/picture.png", views.send_picture, name="picture"),
    path("<uuid:uuid>/share/", views.change_sharing, name="share"),
]
