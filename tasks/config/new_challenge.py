"""Add a challenge to a configuration's text, leaving its other lines as their author wrote them."""

import json
from copy import deepcopy

import yaml

from core.text.words import gettext_noop
from tasks.config.parsing import ConfigError, Problem, format_path, read_yaml

LOCATION = ("support", "challenges")
NO_PLACE = gettext_noop("no line can be added to this part as it is written")
NO_PLACE_FIX = gettext_noop("add the challenge to it in Configuration")


def add_challenge(text: str, name: str, sentence: str) -> str:
    """Return the configuration's text with a further challenge.

    name: of the challenge. sentence: what writers read. Raises ConfigError if the text is
    unreadable, or if its challenges are written in a way to which no line can be added.
    """
    document = read_yaml(text)
    new_text = _insert_item(text, document.root, _write_item(name, sentence))
    expected_data = deepcopy(document.data)
    support = expected_data.get("support") or {}
    new_challenge = {"name": name, "text": sentence}
    support["challenges"] = [new_challenge, *(support.get("challenges") or [])]
    expected_data["support"] = support
    # A list may also begin beside its key, where a line before it belongs to something else.
    try:
        is_as_expected = read_yaml(new_text).data == expected_data
    except ConfigError:
        is_as_expected = False
    if not is_as_expected:
        raise _build_place_error(document.root)
    return new_text


def _write_item(name: str, sentence: str) -> str:
    # JSON is also YAML, and no sign of a sentence has a meaning in it.
    return f"- {{name: {json.dumps(name)}, text: {json.dumps(sentence, ensure_ascii=False)}}}"


def _insert_item(text: str, root: yaml.Node, item: str) -> str:
    """Return the text with an item of a list as the first of its challenges."""
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise _build_place_error(root)
    lines = text.split("\n")
    support = _find_pair(root, "support")
    if support is None:
        return text.rstrip() + f"\n\nsupport:\n  challenges:\n    {item}\n"
    support_key, support_value = support
    if _is_empty(support_value):
        lines[support_key.start_mark.line] = f"support:\n  challenges:\n    {item}"
        return "\n".join(lines)
    if not isinstance(support_value, yaml.MappingNode) or support_value.flow_style:
        raise _build_place_error(support_value)
    challenges = _find_pair(support_value, "challenges")
    if challenges is None:
        first_key = support_value.value[0][0]
        indent = " " * first_key.start_mark.column
        lines.insert(first_key.start_mark.line, f"{indent}challenges:\n{indent}  {item}")
        return "\n".join(lines)
    challenges_value = challenges[1]
    if not isinstance(challenges_value, yaml.SequenceNode) or challenges_value.flow_style:
        raise _build_place_error(challenges_value)
    # Before the first one: comments and block texts hide where the last one ends.
    first_mark = challenges_value.start_mark
    lines.insert(first_mark.line, " " * first_mark.column + item)
    return "\n".join(lines)


def _find_pair(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a mapping's key and its value, or None."""
    for key_node, value_node in node.value:
        if key_node.value == key:
            return key_node, value_node
    return None


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value in ("", "null", "~")


def _build_place_error(node: yaml.Node) -> ConfigError:
    mark = node.start_mark
    path = format_path(LOCATION)
    return ConfigError(
        [Problem("error", path, mark.line + 1, mark.column + 1, NO_PLACE, NO_PLACE_FIX)]
    )
