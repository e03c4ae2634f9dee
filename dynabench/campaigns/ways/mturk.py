"""A client for Mechanical Turk's API, based on boto3.

A bonus that is requested again with the same token is paid only once.
"""

from collections.abc import Sequence
from typing import Any

from core.text.money import format_units
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Bonus, PanelRefused, PanelUnclear

STATUS_WORDS = {"Submitted": "waiting", "Approved": "approved", "Rejected": "rejected"}
TIMEOUT_SECONDS = 20


class MechanicalTurk:
    """An API client for a requester's account.

    token: the access key's id and its secret, separated by a colon.
    """

    knows_keys = True

    def __init__(self, url: str, token: str) -> None:
        """Store the account's address and key, without connecting."""
        self._url = url
        self._key, _, self._secret = token.partition(":")

    def get_status(self, arrival: Arrival) -> str:
        """Return the status of an assignment. See `Api.get_status`."""
        answer = self._ask("get_assignment", AssignmentId=arrival.session)
        status = str(answer.get("Assignment", {}).get("AssignmentStatus", ""))
        return STATUS_WORDS.get(status, status)

    def decide_submission(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """Approve or reject an assignment. See `Api.decide_submission`."""
        if approve:
            self._ask("approve_assignment", AssignmentId=arrival.session)
        else:
            self._ask("reject_assignment", AssignmentId=arrival.session, RequesterFeedback=reason)

    def get_bonus_sum(self, arrival: Arrival) -> int:
        """Return the sum of bonuses, in US cents. See `Api.get_bonus_sum`."""
        answer = self._ask("list_bonus_payments", AssignmentId=arrival.session, MaxResults=100)
        return sum(round(float(bonus["BonusAmount"]) * 100) for bonus in answer["BonusPayments"])

    def prepare_bonuses(self, bonuses: Sequence[Bonus]) -> str:
        """Return "": each bonus is paid by its own call, without preparation."""
        return ""

    def pay_bonuses(self, preparation_id: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """Pay bonuses. See `Api.pay_bonuses`.

        A unique token for each bonus keeps a repeated call from paying twice.
        """
        for bonus in bonuses:
            self._ask(
                "send_bonus",
                WorkerId=bonus.arrival.id,
                AssignmentId=bonus.arrival.session,
                BonusAmount=format_units(bonus.amount, "USD"),
                Reason=reason,
                UniqueRequestToken=bonus.key,
            )

    def _ask(self, call: str, **arguments: Any) -> dict[str, Any]:
        """Call the API and return its answer. Raises PanelRefused or PanelUnclear."""
        import boto3  # type: ignore[import-untyped]  # the web imports none of it
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.exceptions import (  # type: ignore[import-untyped]
            BotoCoreError,
            ClientError,
        )

        # No retries of boto3's own: whether a call may be sent again is the caller's to decide.
        config = Config(
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"total_max_attempts": 1},
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
            answer: dict[str, Any] = getattr(client, call)(**arguments)
        except ClientError as error:
            message = str(error)[:200]
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if "already" in message and "UniqueRequestToken" in arguments:
                return {}  # paid before, with this token
            # It may have failed after it did what was asked.
            if status >= 500:
                raise PanelUnclear(f"Mechanical Turk answered {status}.") from None
            raise PanelRefused(f"Mechanical Turk refused: {message}") from None
        except BotoCoreError as error:
            raise PanelUnclear(
                f"Mechanical Turk did not answer ({type(error).__name__})."
            ) from None
        return answer
