from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "dynabench.notices"
    label = "notices"
