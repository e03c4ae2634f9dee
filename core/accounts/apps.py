from django.apps import AppConfig
from django.db.models.signals import post_save


class AccountsConfig(AppConfig):
    name = "core.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Connect a receiver that runs when any code confirms an address."""
        from allauth.account.models import EmailAddress

        from core.accounts.counting import count_confirmed_address

        post_save.connect(
            count_confirmed_address, sender=EmailAddress, dispatch_uid="count_confirmed_address"
        )
