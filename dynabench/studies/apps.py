"""Configuration of the app `dynabench.studies`."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "dynabench.studies"
    label = "studies"
