"""How people are named to others."""

from django.utils.crypto import salted_hmac

from dynabench.accounts.models import Annotator


def shown_name(annotator: Annotator | None) -> str:
    """A person as owners read them: the pseudonym, which for imported history is made here.

    An imported pseudonym holds the id that the source gave, which may be one of a panel.
    """
    if annotator is None:
        return "unknown"
    if annotator.source != Annotator.Source.IMPORT:
        return annotator.pseudonym
    return f"import-{salted_hmac('shown name', annotator.pseudonym).hexdigest()[:8]}"
