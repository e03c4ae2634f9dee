"""The URLs of the pages on which people fill in a study, `/new/study/…`."""

from django.urls import path

from dynabench.studies import draft_views

app_name = "new-study"
urlpatterns = [
    path("", draft_views.choose_template, name="templates"),
    path("<int:pk>/", draft_views.edit_draft, name="draft"),
    path("<int:pk>/delete/", draft_views.delete_draft, name="delete"),
]
