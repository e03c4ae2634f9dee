from django.urls import path

from validation.judging import views

app_name = "validation"
urlpatterns = [
    path("t/<slug:code>/judge/", views.judge, name="judge"),
    path("t/<slug:code>/judge/skip/", views.skip, name="skip"),
    path("t/<slug:code>/judge/flag/", views.flag, name="flag"),
    path("t/<slug:code>/judge/refresher/", views.refresher, name="refresher"),
    path("judge/<uuid:uuid>/undo/", views.undo, name="undo"),
    path("judge/<uuid:uuid>/after/", views.after, name="after"),
]
