"""The pages of those who take part, `/c/<slug>/…`."""

from django.urls import path

from dynabench.campaigns import views

app_name = "campaigns"
urlpatterns = [
    path("", views.arrive, name="arrive"),
    path("on/", views.go_on, name="on"),
    path("consent/", views.consent, name="consent"),
    path("progress/", views.progress, name="progress"),
    path("next/", views.next_work, name="next"),
    path("again/", views.agree_again, name="again"),
    path("finish/", views.finish, name="finish"),
    path("questions/", views.questions, name="questions"),
    path("test/", views.test, name="test"),
    path("appeal/", views.appeal, name="appeal"),
    path("leave/", views.leave, name="leave"),
]
