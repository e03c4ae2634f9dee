"""Whether the labels of a field can be told apart."""

from collections.abc import Iterator

from core.text import words
from tasks.config.components import Component
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.score_checks import check_unique, find_duplicate


def check_labels(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield the errors in the labels, tags and colours of one field."""
    at = locate_inside(loc, "labels")
    if "labels" in component.kind.keys and loc[0] != "output" and len(component.labels) < 2:
        key = loc
        if "labels" in component.model_fields_set:
            key = at
        yield Finding(key, f"a {component.type} needs labels", "give at least two labels")
    if find_duplicate(component.values) is not None:
        fix = "give each label its own value"
        yield from check_unique(at, component.values, 'two labels are equal ("{}")', fix)
    elif find_duplicate(str(words.label_text(value)) for value in component.values) is not None:
        yield from check_alike_labels(loc, component)
    else:
        display_words, fix = (
            [label.words for label in component.labels],
            "give each its own display",
        )
        yield from check_unique(
            at, display_words, 'two labels are shown in the same words ("{}")', fix
        )
    fix = "give each tag its own name"
    yield from check_unique(
        locate_inside(loc, "tags"), component.tags, 'two tags are equal ("{}")', fix
    )
    names = component.values + component.tags
    for name in component.colours:
        if name not in names:
            message = f'"{name}" is neither a label nor a tag'
            yield Finding(
                locate_inside(loc, "colours", name), message, suggest_nearest(name, names)
            )


def check_alike_labels(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield a finding for each label that readers could not distinguish from an earlier one."""
    for place, earlier in words.alike_labels(component.values):
        message = f'the labels "{earlier}" and "{component.values[place]}" count as equal'
        fix = "let them differ in more than case, spaces or the form of letters"
        yield Finding(locate_inside(loc, "labels", place), message, fix)
