from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "dynabench.webhooks"
    label = "webhooks"
