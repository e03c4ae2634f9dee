"""The URLs of communities' pages, `/communities/…`."""

from django.urls import path

from dynabench.communities import joint_views, own_views, views

app_name = "communities"
MANAGE, ENTRY = "<slug:slug>/manage/", "<slug:slug>/tasks/<int:pk>/"
urlpatterns = [
    path("", views.show_communities, name="communities"),
    path("new/", views.show_proposal_form, name="propose"),
    path("proposals/<int:pk>/", views.show_proposal, name="proposal"),
    path("<slug:slug>/", views.show_community, name="community"),
    path("<slug:slug>/logo/", views.send_logo, name="logo"),
    path("<slug:slug>/board/", views.show_board, name="board"),
    path("<slug:slug>/board/data/", views.show_data_board, name="data"),
    path("<slug:slug>/board/pairs/<slug:code>/", views.show_pair_board, name="pairs"),
    path("<slug:slug>/people/", views.show_people, name="people"),
    path("<slug:slug>/submit/", joint_views.show_submission_form, name="submit"),
    path("<slug:slug>/submissions/<int:pk>/", joint_views.show_joint_submission, name="joint"),
    path("<slug:slug>/join/", own_views.request_to_join, name="join"),
    path(MANAGE, own_views.show_settings, name="manage"),
    path(f"{MANAGE}logo/", own_views.change_logo, name="change-logo"),
    path(f"{MANAGE}owners/", own_views.add_owner_view, name="owner-add"),
    path(f"{MANAGE}owners/<int:pk>/remove/", own_views.remove_owner_view, name="owner-remove"),
    path(f"{MANAGE}news/", own_views.post_news_view, name="news-post"),
    path(f"{MANAGE}news/<int:pk>/delete/", own_views.delete_news_view, name="news-delete"),
    path(f"{MANAGE}weights/", own_views.change_weights, name="weights"),
    path(f"{ENTRY}admit/", own_views.change_entry, {"action": "admit"}, name="admit"),
    path(f"{ENTRY}remove/", own_views.change_entry, {"action": "remove"}, name="remove"),
]
