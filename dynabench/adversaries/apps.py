from django.apps import AppConfig


class AdversariesConfig(AppConfig):
    name = "dynabench.adversaries"
    label = "adversaries"
