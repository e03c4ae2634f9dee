"""The terms for what is counted, with their definitions, for pages, docs and the API."""

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
        gettext_noop("Model was wrong"),
        gettext_noop("Tries that the model got wrong, whether or not people have judged them."),
    ),
    "judged": Term(gettext_noop("Judged"), gettext_noop("Tries with at least one vote.")),
    "decided": Term(
        gettext_noop("Decided"),
        gettext_noop("Tries with a consensus, from votes or an owner."),
    ),
    "confirmed": Term(
        gettext_noop("Confirmed"),
        gettext_noop(
            "Decided tries where people agree with the author, whether the model was right "
            "or wrong."
        ),
    ),
    "catches": Term(
        gettext_noop("Catches"),
        gettext_noop(
            "Confirmed tries that the model got wrong. The catch rate is their share of all tries."
        ),
    ),
    "waiting": Term(
        gettext_noop("Waiting"),
        gettext_noop("Examples that still need votes from judges."),
    ),
}
