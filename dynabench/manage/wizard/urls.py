"""The URLs of drafts, below /new/draft/."""

from django.urls import path

from dynabench.manage.wizard import examples, fields, steps

urlpatterns = [
    path("", steps.create_new_draft, name="draft-new"),
    # These two steps are more than one form; they are named as the others, by `draft-step`.
    path("<int:pk>/fields/", fields.show_fields),
    path("<int:pk>/fields/change/", fields.change_fields, name="draft-fields-change"),
    path("<int:pk>/fields/<slug:place>/<int:index>/", fields.show_field, name="draft-field"),
    path(
        "<int:pk>/examples/<slug:kind>/<slug:key>/",
        examples.show_example_form,
        name="draft-example",
    ),
    path("<int:pk>/finish/", steps.show_last_step),
    path("<int:pk>/yaml/", steps.edit_draft_text, name="draft-yaml"),
    path("<int:pk>/preview/", steps.preview_draft, name="draft-preview"),
    path("<int:pk>/delete/", steps.delete_own_draft, name="draft-delete"),
    # Last, because a step is any word.
    path("<int:pk>/<slug:step>/", steps.show_step_form, name="draft-step"),
]
