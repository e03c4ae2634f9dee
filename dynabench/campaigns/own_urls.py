"""The pages of a task's owners about its campaigns, `/own/<code>/campaigns/…`."""

from django.urls import path

from dynabench.campaigns import own_views, question_views

app_name = "own-campaigns"
urlpatterns = [
    path("", own_views.campaigns, name="campaigns"),
    path("new/", own_views.campaign_make, name="make"),
    path("<slug:slug>/", own_views.campaign, name="campaign"),
    path("<slug:slug>/change/", own_views.campaign_change, name="change"),
    path("<slug:slug>/questions/", question_views.questions, name="questions"),
    path("<slug:slug>/state/", own_views.campaign_state, name="state"),
    path("<slug:slug>/invite/", own_views.campaign_invite, name="invite"),
    path("<slug:slug>/paid/", own_views.campaign_paid, name="paid"),
    path("<slug:slug>/settle/", own_views.campaign_settle, name="settle"),
    path("<slug:slug>/bonuses/", own_views.campaign_bonuses, name="bonuses"),
    path("<slug:slug>/payments/<int:pk>/", own_views.payment_resolve, name="payment"),
    path("<slug:slug>/coverage/", own_views.coverage, name="coverage"),
    path("<slug:slug>/quality/", own_views.quality, name="quality"),
    path("<slug:slug>/places/<int:pk>/", own_views.place, name="place"),
    path("<slug:slug>/<slug:kind>.csv", own_views.campaign_file, name="file"),
]
