"""The prompt and settings of a submitted chat model, as far as readers may see them."""

from typing import Any

from evaluation.models import Submission
from evaluation.runs.chat.settings import MAX_SHOTS, ChatSettings
from evaluation.runs.chat.shots import find_shot_uids
from evaluation.submissions.visibility import Viewer
from tasks.targets.endpoints.answer_reader import READER_VERSION


def describe_chat(submission: Submission, viewer: Viewer) -> dict[str, Any] | None:
    """Return a chat model's prompt and settings; None for other models and for withdrawn ones.

    Outsiders do not get the cap and the spending, nor an anonymous model's name on its server.
    """
    if not submission.chat:
        return None
    chat = ChatSettings.from_stored(submission.chat)
    values: dict[str, Any] = {
        **vars(chat),
        "reader": READER_VERSION,
        "shot_uids": find_shot_uids(chat, MAX_SHOTS),
        "base": submission.base,
        "spent": submission.spent,
    }
    if not viewer.is_inside:
        values |= {"most_cost": None, "spent": None}
        if submission.is_anonymous:
            values["model"] = ""
    return values
