"""What the admin's forms send, and the addresses of the pages."""

import re

from django.urls import URLPattern, URLResolver, get_resolver


def round_form(round, **changes):
    entries = list(round.round_targets.all())
    form = {
        "rule": round.rule,
        "show_target_name": "on",
        "description": round.description,
        "round_targets-TOTAL_FORMS": len(entries),
        "round_targets-INITIAL_FORMS": len(entries),
    }
    return {**form, **changes}


def new_targets(round, *targets):
    form = round_form(round) | {"round_targets-TOTAL_FORMS": len(targets)}
    for place, target in enumerate(targets):
        form[f"round_targets-{place}-target"] = target.pk
        form[f"round_targets-{place}-round"] = round.pk
    return form


def target_form(task, **changes):
    form = {"task": task.pk, "name": "mine", "adapter": "scripted", "url": "http://mine.test"}
    return {**form, "options": '{"label": "neutral"}', "serving": "{}", **changes}


SAMPLES = {
    "int": "1",
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "slug": "nli",
    "str": "nothing",
    "path": "nothing",
}


def addresses(patterns, before="/"):
    """Every address of the site, with a sample for each of its values."""
    for entry in patterns:
        here = before + sample(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, here)
        elif isinstance(entry, URLPattern):
            yield here


def sample(pattern) -> str:
    """An address that the pattern, a route or a regular expression, may match."""
    text = str(pattern)
    if hasattr(pattern, "_route"):
        return re.sub(r"<(?:(\w+):)?\w+>", lambda found: SAMPLES[found[1] or "str"], text)
    text = re.sub(r"\(\?P<\w+>(?:[^()]|\([^()]*\))*\)", "1", text)
    return re.sub(r"^\^|\$$|\\Z|\(\?:.*?\)\??", "", text).replace("\\", "")


ADDRESSES = sorted(set(addresses(get_resolver().url_patterns)))
