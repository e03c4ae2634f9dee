from importlib import import_module

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "dynabench.campaigns"
    label = "campaigns"

    def ready(self) -> None:
        """Register the campaigns' answers to questions that other apps ask."""
        import_module("dynabench.campaigns.answers")
