"""Addresses of drafts, below /new/draft/."""

from django.urls import path

from dynabench.manage.wizard import examples, fields, steps

urlpatterns = [
    path("", steps.draft_new, name="draft-new"),
    # These two steps are more than one form; they are named as the others, by `draft-step`.
    path("<int:pk>/fields/", fields.fields_page),
    path("<int:pk>/fields/change/", fields.fields_change, name="draft-fields-change"),
    path("<int:pk>/fields/<slug:place>/<int:index>/", fields.field_page, name="draft-field"),
    path("<int:pk>/examples/<slug:kind>/<slug:key>/", examples.example_page, name="draft-example"),
    path("<int:pk>/finish/", steps.finish_page),
    path("<int:pk>/yaml/", steps.draft_yaml, name="draft-yaml"),
    path("<int:pk>/preview/", steps.draft_preview, name="draft-preview"),
    path("<int:pk>/delete/", steps.draft_delete, name="draft-delete"),
    # Last, because a step is any word.
    path("<int:pk>/<slug:step>/", steps.step_page, name="draft-step"),
]
