"""Pages of communities, `/communities/…`."""

from django.urls import path

from dynabench.communities import joint_views, own_views, views

app_name = "communities"
MANAGE, ENTRY = "<slug:slug>/manage/", "<slug:slug>/tasks/<int:pk>/"
urlpatterns = [
    path("", views.communities, name="communities"),
    path("new/", views.propose, name="propose"),
    path("proposals/<int:pk>/", views.proposal, name="proposal"),
    path("<slug:slug>/", views.community, name="community"),
    path("<slug:slug>/logo/", views.logo, name="logo"),
    path("<slug:slug>/board/", views.board, name="board"),
    path("<slug:slug>/board/data/", views.data, name="data"),
    path("<slug:slug>/board/pairs/<slug:code>/", views.pairs, name="pairs"),
    path("<slug:slug>/people/", views.people, name="people"),
    path("<slug:slug>/submit/", joint_views.submit, name="submit"),
    path("<slug:slug>/submissions/<int:pk>/", joint_views.joint, name="joint"),
    path("<slug:slug>/join/", own_views.join, name="join"),
    path(MANAGE, own_views.manage, name="manage"),
    path(f"{MANAGE}logo/", own_views.change_logo, name="change-logo"),
    path(f"{MANAGE}owners/", own_views.owner_add, name="owner-add"),
    path(f"{MANAGE}owners/<int:pk>/remove/", own_views.owner_remove, name="owner-remove"),
    path(f"{MANAGE}news/", own_views.news_post, name="news-post"),
    path(f"{MANAGE}news/<int:pk>/delete/", own_views.news_delete, name="news-delete"),
    path(f"{MANAGE}weights/", own_views.weights, name="weights"),
    path(f"{ENTRY}admit/", own_views.entry, {"action": "admit"}, name="admit"),
    path(f"{ENTRY}remove/", own_views.entry, {"action": "remove"}, name="remove"),
]
