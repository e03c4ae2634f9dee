"""Whether a model may have a GPU of the site. Pure."""

from core.text.words import gettext_noop


def find_gpus_problem(gpus: int, site_has: int) -> str:
    """Return why a model cannot have this number of GPUs; "" if it can."""
    if gpus and not site_has:
        return gettext_noop("This site has no GPU.")
    if gpus <= 1:
        return ""
    return gettext_noop("A model gets one GPU at most.")
