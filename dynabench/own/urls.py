"""Pages of a task's owners, `/own/<code>/…`."""

from django.urls import URLPattern

app_name = "own"
urlpatterns: list[URLPattern] = []
