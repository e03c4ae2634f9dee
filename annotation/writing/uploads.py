"""Store the files of a form before the form is checked, so that a refusal does not lose them."""

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import get_adapter
from django.http import HttpRequest
from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from core.errors import Refused, Unavailable
from core.files.decoding import MAX_BYTES, TOO_MANY_BYTES_MESSAGE
from core.web.throttles import is_used_up
from tasks.contexts.media.services import TOO_OFTEN_MESSAGE, store_media
from tasks.models import Task

MAX_BODY_BYTES = 64 * 2**20
"""The largest request body.

Larger than the limit of a file, so that the form can refuse the file and keep everything else.
"""


def receive_form(
    request: HttpRequest, task: Task, annotator: Annotator | None = None
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Store the files of a form; return its data with digests, and messages on rejected files.

    The data has a file's digest in place of the file. The messages are by field name. annotator:
    None in practice, where files are deleted after a day.
    """
    fields = {
        component.name: component.kind.element
        for component in task.config.input
        if component.is_media
    }
    if not fields or not request.FILES:
        return request.POST, {}
    data, refusals = request.POST.copy(), {}
    for name, kind in fields.items():
        # What was recorded now goes before a file that was chosen earlier.
        file = request.FILES.get(f"{name}_now") or request.FILES.get(f"{name}_file")
        if file is None:
            continue
        # Guests have no account to count by, so their address counts.
        quota_owner = str(annotator.pk) if annotator else get_adapter().get_client_ip(request)
        try:
            # Before reading: a large file must not fill the memory.
            if (file.size or 0) > MAX_BYTES:
                raise Refused(_(TOO_MANY_BYTES_MESSAGE))
            if is_used_up("media", quota_owner):
                raise Refused(_(TOO_OFTEN_MESSAGE))
            value = store_media(task=task, kind=kind, data=file.read(), sent_by=annotator)
            data[name] = value["digest"]
        except (Refused, Unavailable) as error:
            refusals[name] = str(error)
    return data, refusals
