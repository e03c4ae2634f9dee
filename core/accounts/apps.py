from django.apps import AppConfig
from django.db.models.signals import post_save


class AccountsConfig(AppConfig):
    name = "core.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Connect a receiver for confirmed addresses, whatever code confirms them."""
        from allauth.account.models import EmailAddress

        from core.accounts.counting import note_address

        post_save.connect(note_address, sender=EmailAddress, dispatch_uid="note_address")
