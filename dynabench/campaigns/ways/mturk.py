"""Mechanical Turk's API by boto3: approval and bonuses, each with a token that it knows again."""

from collections.abc import Sequence
from typing import Any

from dynabench.campaigns.rules.pay import units
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Bonus, PanelRefused, PanelUnclear

WORDS = {"Submitted": "waiting", "Approved": "approved", "Rejected": "rejected"}
SECONDS = 20


class MechanicalTurk:
    """A requester's account; token: the access key's id and its secret, with a colon between."""

    knows_keys = True

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._key, _, self._secret = token.partition(":")

    def status(self, arrival: Arrival) -> str:
        """As `Api.status`."""
        found = self._ask("get_assignment", AssignmentId=arrival.session)
        said = str(found.get("Assignment", {}).get("AssignmentStatus", ""))
        return WORDS.get(said, said)

    def decide(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """As `Api.decide`."""
        if approve:
            self._ask("approve_assignment", AssignmentId=arrival.session)
        else:
            told = {"AssignmentId": arrival.session, "RequesterFeedback": reason}
            self._ask("reject_assignment", **told)

    def bonuses(self, arrival: Arrival) -> int:
        """As `Api.bonuses`; Mechanical Turk pays in US dollars."""
        found = self._ask("list_bonus_payments", AssignmentId=arrival.session, MaxResults=100)
        return sum(round(float(one["BonusAmount"]) * 100) for one in found["BonusPayments"])

    def set_up(self, bonuses: Sequence[Bonus]) -> str:
        """Nothing is prepared."""
        return ""

    def pay(self, prepared: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """As `Api.pay`: what is sent again with its token is paid once."""
        for one in bonuses:
            self._ask(
                "send_bonus",
                WorkerId=one.arrival.id,
                AssignmentId=one.arrival.session,
                BonusAmount=units(one.amount, "USD"),
                Reason=reason,
                UniqueRequestToken=one.key,
            )

    def _ask(self, call: str, **told: Any) -> dict[str, Any]:
        import boto3  # type: ignore[import-untyped]  # the web imports none of it
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.exceptions import (  # type: ignore[import-untyped]
            BotoCoreError,
            ClientError,
        )

        config = Config(
            connect_timeout=SECONDS, read_timeout=SECONDS, retries={"total_max_attempts": 1}
        )
        client = boto3.client(
            "mturk",
            region_name="us-east-1",
            endpoint_url=self._url,
            aws_access_key_id=self._key,
            aws_secret_access_key=self._secret,
            config=config,
        )
        try:
            found: dict[str, Any] = getattr(client, call)(**told)
        except ClientError as error:
            said, status = str(error)[:200], error.response["ResponseMetadata"]["HTTPStatusCode"]
            if "already" in said and "UniqueRequestToken" in told:
                return {}  # paid before, with this token
            if status >= 500:
                raise PanelUnclear(f"Mechanical Turk answered {status}.") from None
            raise PanelRefused(f"Mechanical Turk refused: {said}") from None
        except BotoCoreError as error:
            raise PanelUnclear(
                f"Mechanical Turk did not answer ({type(error).__name__})."
            ) from None
        return found
