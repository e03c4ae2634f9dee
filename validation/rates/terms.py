"""The words for what is counted, with their one meaning each: for pages, docs and the API."""

from collections.abc import Mapping
from typing import NamedTuple

from core.text.words import gettext_noop


class Term(NamedTuple):
    """The name of a count in columns and charts, and its definition."""

    title: str
    meaning: str


TERMS: Mapping[str, Term] = {
    "tries": Term(
        gettext_noop("Tries"),
        gettext_noop("Examples that people submitted. Withdrawn ones don't count."),
    ),
    "fooled": Term(
        gettext_noop("Fooled"),
        gettext_noop("Tries after which the model counts as fooled, before anybody judges them."),
    ),
    "judged": Term(gettext_noop("Judged"), gettext_noop("Tries with at least one vote.")),
    "decided": Term(
        gettext_noop("Decided"),
        gettext_noop("Tries with a consensus: the votes or an owner have decided."),
    ),
    "confirmed": Term(
        gettext_noop("Confirmed"),
        gettext_noop("Decided tries in which people agree with the author, fooled or not."),
    ),
    "catches": Term(
        gettext_noop("Catches"),
        gettext_noop("Confirmed tries that fooled the model. vMER is their share of all tries."),
    ),
    "waiting": Term(
        gettext_noop("Waiting"),
        gettext_noop("Examples that still need votes from judges, in the queue or about to be."),
    ),
}
