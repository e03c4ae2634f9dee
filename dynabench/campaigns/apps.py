from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "dynabench.campaigns"
    label = "campaigns"
