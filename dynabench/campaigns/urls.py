"""The URLs of the participants' pages, `/c/<slug>/…`."""

from django.urls import path

from dynabench.campaigns import views

app_name = "campaigns"
urlpatterns = [
    path("", views.show_arrival_page, name="arrive"),
    path("on/", views.resume_participation, name="on"),
    path("consent/", views.answer_consent, name="consent"),
    path("progress/", views.show_progress, name="progress"),
    path("next/", views.open_next_work, name="next"),
    path("again/", views.agree_again, name="again"),
    path("finish/", views.finish_work, name="finish"),
    path("questions/", views.show_questionnaire, name="questions"),
    path("test/", views.show_test, name="test"),
    path("appeal/", views.send_appeal, name="appeal"),
    path("leave/", views.leave_study, name="leave"),
]
