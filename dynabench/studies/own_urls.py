"""The URLs of the task owners' pages about studies, `/own/<code>/studies/…`."""

from django.urls import path

from dynabench.studies import own_views

app_name = "own-studies"
urlpatterns = [
    path("", own_views.list_studies, name="studies"),
    path("new/", own_views.create_study, name="make"),
    path("<slug:slug>/", own_views.show_study, name="study"),
    path("<slug:slug>/change/", own_views.edit_study, name="change"),
    path("<slug:slug>/state/", own_views.change_state, name="state"),
    path("<slug:slug>/power/", own_views.simulate_power, name="power"),
    path("<slug:slug>/pilot/", own_views.change_pilot, name="pilot"),
    path("<slug:slug>/approval/", own_views.ask_for_approval, name="approval"),
    path("<slug:slug>/open/", own_views.open_to_people, name="open"),
    path("<slug:slug>/report.json", own_views.download_report, name="report"),
    path("<slug:slug>/bundle.zip", own_views.download_bundle, name="bundle"),
]
