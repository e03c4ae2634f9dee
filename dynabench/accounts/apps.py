from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "dynabench.accounts"
    label = "accounts"
