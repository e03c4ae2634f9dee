from django.urls import path

from leaderboard import board_views, views

app_name = "leaderboard"
urlpatterns = [
    path("t/<slug:code>/leaderboard/", board_views.board, name="board"),
    path("t/<slug:code>/people/", views.people, name="people"),
    path("t/<slug:code>/people/people.csv", views.people_csv, name="people-csv"),
]
