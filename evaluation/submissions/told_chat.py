"""How a submitted chat model is asked, as its readers may know it."""

from typing import Any

from evaluation.models import Submission
from evaluation.runs.chat.settings import MOST_SHOTS, ChatSettings
from evaluation.runs.chat.shots import uids_of
from evaluation.submissions.visibility import Viewer
from tasks.targets.endpoints.answer_reader import READER


def told_chat(submission: Submission, viewer: Viewer) -> dict[str, Any] | None:
    """Return a chat model's prompt and settings; None for other and for withdrawn models.

    Cap and spending are for those inside; so is the model's name on its server while it is
    anonymous.
    """
    if not submission.chat:
        return None
    chat, is_inside = ChatSettings.of(submission.chat), viewer.is_inside
    return {
        **vars(chat),
        "model": chat.model if is_inside or not submission.is_anonymous else "",
        "reader": READER,
        "shot_uids": uids_of(chat, MOST_SHOTS),
        "base": submission.base,
        "most_cost": chat.most_cost if is_inside else None,
        "spent": submission.spent if is_inside else None,
    }
