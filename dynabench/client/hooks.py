"""Webhooks: events that the server sends to one's own programs."""

from typing import Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking


class Hooks(Asking):
    """The methods about webhooks."""

    @method
    def webhooks(self) -> Flow[list[types.Webhook]]:
        """Return one's webhooks, without their secrets."""
        return self._all("/webhooks/")

    @method
    def create_webhook(self, **webhook: Unpack[types.WebhookNew]) -> Flow[types.WebhookMade]:
        """Create a webhook, such as `url="https://…", events=["round.closed"], task="nli"`.

        Its `secret` is returned here and never again. Raises Invalid, Refused.
        """
        return self._write("POST", "/webhooks/", webhook)

    @method
    def change_webhook(
        self, webhook_id: int, **changes: Unpack[types.WebhookChange]
    ) -> Flow[types.Webhook]:
        """Change a webhook's `url` or `events`, or switch it off with `is_on=False`.

        Raises Invalid.
        """
        return self._write("PATCH", f"/webhooks/{webhook_id}/", changes)

    @method
    def delete_webhook(self, webhook_id: int) -> Flow[None]:
        """Delete a webhook, with its log."""
        return self._write("DELETE", f"/webhooks/{webhook_id}/")

    @method
    def test_webhook(self, webhook_id: int) -> Flow[types.Delivery]:
        """Send a webhook a test event; `deliveries` says how that ended. Raises Refused."""
        return self._write("POST", f"/webhooks/{webhook_id}/test/")

    @method
    def new_webhook_secret(self, webhook_id: int) -> Flow[types.WebhookMade]:
        """Sign with a new `secret` from now on, which is returned here and never again."""
        return self._write("POST", f"/webhooks/{webhook_id}/secret/")

    @method
    def deliver_again(self, webhook_id: int, delivery_id: str) -> Flow[types.Delivery]:
        """Send an event that arrived or was given up again, under the same id. Raises Refused."""
        return self._write("POST", f"/webhooks/{webhook_id}/deliveries/{delivery_id}/again/")

    @method
    def deliveries(self, webhook_id: int) -> Flow[list[types.Delivery]]:
        """Return a webhook's deliveries of the last 30 days and their outcome, the newest first."""
        return self._all(f"/webhooks/{webhook_id}/deliveries/")
