"""Check whether the labels of a field can be told apart."""

from collections.abc import Iterator

from core.text import words
from tasks.config.components import Component
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.score_checks import find_duplicate, find_repetitions


def find_label_errors(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield the errors in the labels, tags and colours of a field."""
    labels_location = locate_inside(loc, "labels")
    if "labels" in component.kind.keys and loc[0] != "output" and len(component.labels) < 2:
        location = loc
        if "labels" in component.model_fields_set:
            location = labels_location
        yield Finding(location, f"a {component.type} needs labels", "give at least two labels")
    if find_duplicate(component.values) is not None:
        fix = "give each label its own value"
        yield from find_repetitions(
            labels_location, component.values, 'two labels are equal ("{}")', fix
        )
    elif find_duplicate(str(words.format_label(value)) for value in component.values) is not None:
        yield from find_alike_labels(loc, component)
    else:
        display_words, fix = (
            [label.words for label in component.labels],
            "give each its own display",
        )
        yield from find_repetitions(
            labels_location, display_words, 'two labels are shown in the same words ("{}")', fix
        )
    fix = "give each tag its own name"
    yield from find_repetitions(
        locate_inside(loc, "tags"), component.tags, 'two tags are equal ("{}")', fix
    )
    names = component.values + component.tags
    for name in component.colours:
        if name not in names:
            message = f'"{name}" is neither a label nor a tag'
            yield Finding(
                locate_inside(loc, "colours", name), message, suggest_nearest(name, names)
            )


def find_alike_labels(loc: Loc, component: Component) -> Iterator[Finding]:
    """Yield a finding for each label that counts as equal to an earlier one."""
    for index, earlier_label in words.iterate_alike_labels(component.values):
        message = f'the labels "{earlier_label}" and "{component.values[index]}" count as equal'
        fix = "let them differ in more than case, spaces or the form of letters"
        yield Finding(locate_inside(loc, "labels", index), message, fix)
