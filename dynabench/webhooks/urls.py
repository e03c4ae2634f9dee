"""The URLs of a person's webhooks, `/account/webhooks/…`."""

from django.urls import path

from dynabench.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("", views.show_webhooks, name="webhooks"),
    path("<int:pk>/", views.show_webhook, name="webhook"),
    path("<int:pk>/switch/", views.switch_webhook, name="switch"),
    path("<int:pk>/secret/", views.replace_secret, name="secret"),
    path("<int:pk>/test/", views.send_test_event, name="test"),
    path("<int:pk>/delete/", views.delete_own_webhook, name="delete"),
    path("<int:pk>/deliveries/<uuid:delivery>/again/", views.resend_delivery, name="again"),
]
