from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "dynabench.operations.demo"
    label = "demo"
