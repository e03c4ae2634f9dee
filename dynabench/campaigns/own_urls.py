"""The URLs of the task owners' campaign pages, `/own/<code>/campaigns/…`."""

from django.urls import path

from dynabench.campaigns import own_views, plan_views, question_views

app_name = "own-campaigns"
urlpatterns = [
    path("", own_views.list_campaigns, name="campaigns"),
    path("new/", plan_views.create_campaign, name="make"),
    path("<slug:slug>/", own_views.show_campaign, name="campaign"),
    path("<slug:slug>/change/", plan_views.continue_plan, name="change"),
    path("<slug:slug>/change/<slug:step>/", plan_views.edit_step, name="step"),
    path("<slug:slug>/questions/", question_views.edit_questions, name="questions"),
    path("<slug:slug>/state/", own_views.change_state, name="state"),
    path("<slug:slug>/invite/", own_views.invite_people, name="invite"),
    path("<slug:slug>/paid/", own_views.record_payments, name="paid"),
    path("<slug:slug>/settle/", own_views.credit_pay, name="settle"),
    path("<slug:slug>/bonuses/", own_views.plan_all_bonuses, name="bonuses"),
    path("<slug:slug>/payments/<int:pk>/", own_views.resolve_unclear_payment, name="payment"),
    path("<slug:slug>/coverage/", own_views.show_coverage, name="coverage"),
    path("<slug:slug>/bonus/", own_views.show_bonus_preview, name="bonus-preview"),
    path("<slug:slug>/quality/", own_views.show_quality, name="quality"),
    path("<slug:slug>/places/<int:pk>/", own_views.show_place, name="place"),
    path("<slug:slug>/<slug:kind>.csv", own_views.download_file, name="file"),
]
