"""Pages about one's webhooks, `/account/webhooks/…`."""

from django.urls import path

from dynabench.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("", views.webhooks, name="webhooks"),
    path("<int:pk>/", views.webhook, name="webhook"),
    path("<int:pk>/switch/", views.switch, name="switch"),
    path("<int:pk>/secret/", views.secret, name="secret"),
    path("<int:pk>/test/", views.send_test_event, name="test"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/deliveries/<uuid:delivery>/again/", views.again, name="again"),
]
