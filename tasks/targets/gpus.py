"""Check whether a model may use GPUs of the site. Pure."""

from core.text.words import gettext_noop


def find_gpu_count_problem(gpu_count: int, site_gpu_count: int) -> str:
    """Return why a model cannot have this number of GPUs; "" if it can.

    site_gpu_count: the number of GPUs of the site.
    """
    if gpu_count and not site_gpu_count:
        return gettext_noop("This site has no GPU. Enter 0.")
    if gpu_count <= 1:
        return ""
    return gettext_noop("A model can use at most one GPU. Enter 0 or 1.")
