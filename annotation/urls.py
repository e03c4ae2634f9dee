from django.urls import path

from annotation.care import views as care_views
from annotation.writing import aid_views, practice, talk_views, views

app_name = "annotation"
urlpatterns = [
    path("t/<slug:code>/gate/", views.show_gate, name="gate"),
    path("t/<slug:code>/care/", care_views.manage_limits, name="care"),
    path("t/<slug:code>/care/seen/", care_views.record_seen_seconds, name="seen"),
    path("t/<slug:code>/write/", views.show_write_page, name="write"),
    path("t/<slug:code>/write/next/", views.assign_next_work, name="write-next"),
    path("t/<slug:code>/write/talk/", talk_views.show_talk, name="talk"),
    path("talk/<int:pk>/stream/", talk_views.stream_talk, name="talk-stream"),
    path("t/<slug:code>/write/support/", aid_views.show_aid, name="support"),
    path("t/<slug:code>/try/", practice.show_try_out, name="try-out"),
    path("t/<slug:code>/try/keep/", practice.keep_text_for_account, name="keep"),
    path("draft/<int:pk>/", views.save_posted_draft, name="draft"),
    path("attempt/<uuid:uuid>/", views.show_attempt, name="attempt"),
    path("attempt/<uuid:uuid>/answer/", views.store_author_answer, name="attempt-answer"),
    path("attempt/<uuid:uuid>/model/", views.answer_model_question, name="attempt-model"),
    path("attempt/<uuid:uuid>/why/", views.store_why, name="attempt-why"),
    path("attempt/<uuid:uuid>/saliency/", views.show_saliency, name="attempt-saliency"),
    path("attempt/<uuid:uuid>/retract/", views.retract_own_example, name="attempt-retract"),
    path("context/<int:pk>/report/", views.report_assigned_context, name="context-report"),
]
