from django.urls import path

from annotation.care import views as care_views
from annotation.writing import aid_views, practice, talk_views, views

app_name = "annotation"
urlpatterns = [
    path("t/<slug:code>/gate/", views.gate, name="gate"),
    path("t/<slug:code>/care/", care_views.care, name="care"),
    path("t/<slug:code>/care/seen/", care_views.seen, name="seen"),
    path("t/<slug:code>/write/", views.write, name="write"),
    path("t/<slug:code>/write/next/", views.write_next, name="write-next"),
    path("t/<slug:code>/write/talk/", talk_views.talk, name="talk"),
    path("talk/<int:pk>/stream/", talk_views.talk_stream, name="talk-stream"),
    path("t/<slug:code>/write/support/", aid_views.support, name="support"),
    path("t/<slug:code>/try/", practice.try_out, name="try-out"),
    path("t/<slug:code>/try/keep/", practice.keep, name="keep"),
    path("draft/<int:pk>/", views.draft, name="draft"),
    path("attempt/<uuid:uuid>/", views.attempt_detail, name="attempt"),
    path("attempt/<uuid:uuid>/answer/", views.attempt_answer, name="attempt-answer"),
    path("attempt/<uuid:uuid>/why/", views.attempt_why, name="attempt-why"),
    path("attempt/<uuid:uuid>/saliency/", views.attempt_saliency, name="attempt-saliency"),
    path("attempt/<uuid:uuid>/retract/", views.attempt_retract, name="attempt-retract"),
    path("context/<int:pk>/report/", views.context_report, name="context-report"),
]
