from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "dynabench.demo"
    label = "demo"
