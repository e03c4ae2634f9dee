from django.apps import AppConfig


class CommunitiesConfig(AppConfig):
    name = "dynabench.communities"
    label = "communities"
