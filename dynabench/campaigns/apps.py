from importlib import import_module

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "dynabench.campaigns"
    label = "campaigns"

    def ready(self) -> None:
        """Answer the questions of earlier rooms."""
        import_module("dynabench.campaigns.answers")
