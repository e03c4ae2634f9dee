"""Tell which submissions are versions of one model, because such versions resemble each other."""

import re
from collections.abc import Sequence
from uuid import UUID

from evaluation.models import Submission

CHECKPOINT = re.compile(r"[ _.-](?:v|step|epoch|checkpoint|ckpt)[ _.-]?\d+$|_[^_]+$")
"""The end of a name by which versions of one model differ."""


def identify_whole_models(model_ids: Sequence[UUID]) -> list[str]:
    """Return for each submission the model that it is a version of. One query.

    Submissions of one owner whose names differ only in a version or after the last `_` are one.
    """
    # The team, too: members of two teams may give their models the same name.
    rows = Submission.objects.filter(pk__in=model_ids).values_list("pk", "owner", "team", "name")
    names = {
        pk: f"{owner} {team} {CHECKPOINT.sub('', name.lower()) or name}"
        for pk, owner, team, name in rows
    }
    return [names[pk] for pk in model_ids]
