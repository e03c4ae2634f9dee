from django.urls import path

from validation.judging import views

app_name = "validation"
urlpatterns = [
    path("t/<slug:code>/judge/", views.judge_example, name="judge"),
    path("t/<slug:code>/judge/skip/", views.skip_example, name="skip"),
    path("t/<slug:code>/judge/flag/", views.flag_example, name="flag"),
    path("t/<slug:code>/judge/refresher/", views.finish_refresher, name="refresher"),
    path("judge/<uuid:uuid>/undo/", views.undo_answer, name="undo"),
    path("judge/<uuid:uuid>/after/", views.show_after_vote, name="after"),
]
