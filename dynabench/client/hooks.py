"""Webhooks: events that the server sends to one's own programs."""

from typing import Unpack

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Asking


class Hooks(Asking):
    """The methods about webhooks."""

    @method
    def webhooks(self) -> Flow[list[types.Webhook]]:
        """One's webhooks, without their secrets."""
        return self._all("/webhooks/")

    @method
    def create_webhook(self, **webhook: Unpack[types.WebhookNew]) -> Flow[types.WebhookMade]:
        """Make one, such as `url="https://…", events=["round.closed"], task="nli"`.

        Its `secret` is shown here and never again. Raises Invalid, Refused.
        """
        return self._write("POST", "/webhooks/", webhook)

    @method
    def change_webhook(
        self, webhook_id: int, **changes: Unpack[types.WebhookChange]
    ) -> Flow[types.Webhook]:
        """Change its `url` or `events`, or switch it off with `is_on=False`. Raises Invalid."""
        return self._write("PATCH", f"/webhooks/{webhook_id}/", changes)

    @method
    def delete_webhook(self, webhook_id: int) -> Flow[None]:
        """Delete it, with its log."""
        return self._write("DELETE", f"/webhooks/{webhook_id}/")

    @method
    def test_webhook(self, webhook_id: int) -> Flow[types.Delivery]:
        """Send it an event that says nothing; `deliveries` says how it ended. Raises Refused."""
        return self._write("POST", f"/webhooks/{webhook_id}/test/")

    @method
    def new_webhook_secret(self, webhook_id: int) -> Flow[types.WebhookMade]:
        """Sign with a new `secret` from now on, which is shown here and never again."""
        return self._write("POST", f"/webhooks/{webhook_id}/secret/")

    @method
    def deliver_again(self, webhook_id: int, delivery_id: str) -> Flow[types.Delivery]:
        """Send what arrived or was given up once more, under the same id. Raises Refused."""
        return self._write("POST", f"/webhooks/{webhook_id}/deliveries/{delivery_id}/again/")

    @method
    def deliveries(self, webhook_id: int) -> Flow[list[types.Delivery]]:
        """Its deliveries of the last 30 days, and how they ended; the newest first."""
        return self._all(f"/webhooks/{webhook_id}/deliveries/")
