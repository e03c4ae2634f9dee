"""Make the endpoints of submitted models that are called over the network. No Docker."""

from typing import Any

from core.data.encryption import UnreadableSecret, decrypt
from evaluation.contract import ENDPOINT_ADAPTERS, AttemptFailed, WritingSettings
from evaluation.kinds import KINDS
from evaluation.models import Submission
from evaluation.runs.chat.asking import make_chat_endpoint, make_endpoint_config
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.chat.shots import ShotsGone, read_shots
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import Endpoint
from tasks.targets.endpoints.openai_chat import OpenAIChatEndpoint
from tasks.targets.endpoints.registry import build_endpoint
from tasks.targets.spending_services import MeteredEndpoint, Payer


class CannotFetch(AttemptFailed):
    """Raised when a submission's files are missing or have changed; the message says why."""


def make_submission_endpoint(submission: Submission) -> Endpoint:
    """Return the endpoint of a submission, or of the target that it represents.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    if submission.target:
        return MeteredEndpoint(get_endpoint(submission.target), Payer(submission.target))
    try:
        secret = decrypt(submission.secret)
    except UnreadableSecret as error:
        raise CannotFetch(f"The endpoint's secret cannot be read: {error}") from None
    config = submission.task.config
    if KINDS[submission.kind].has_prompt:
        return make_prompt_endpoint(submission, submission.source, secret)
    endpoint_config = make_endpoint_config(config, submission.source, secret)
    return build_endpoint(ENDPOINT_ADAPTERS[submission.adapter], endpoint_config)


def make_prompt_endpoint(submission: Submission, url: str, secret: str = "") -> OpenAIChatEndpoint:
    """Return the endpoint that calls a chat model or, for a language model, builds its prompts.

    Raises CannotFetch.
    """
    chat = ChatSettings.from_stored(submission.chat)
    return make_chat_endpoint(submission.task.config, url, secret, chat, _read_shots(submission))


def _read_shots(submission: Submission) -> list[dict[str, Any]]:
    try:
        return read_shots(submission.task, ChatSettings.from_stored(submission.chat))
    except ShotsGone as error:
        raise CannotFetch(str(error)) from None


def read_writing_settings(submission: Submission) -> WritingSettings | None:
    """Return the generation settings of a language model; None for other models."""
    if not KINDS[submission.kind].writes_here:
        return None
    chat = ChatSettings.from_stored(submission.chat)
    return WritingSettings(chat.max_tokens, chat.stop)


def compute_identity(submission: Submission, origin: str) -> str:
    """Return the digest that identifies a model.

    A model with a prompt is identified by its files or address and all its settings.
    origin: the digest of its files, or the address of a chat model.
    Raises CannotFetch.
    """
    if not KINDS[submission.kind].has_prompt:
        return origin
    if submission.base:  # the same adapter on another base is another model
        origin = f"{origin} on {submission.base}"
    return ChatSettings.from_stored(submission.chat).compute_digest(origin, _read_shots(submission))
