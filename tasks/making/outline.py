"""Work with an incomplete configuration, plain data from YAML in which anything may be missing.

The functions change the data in place. They keep settings that the wizard cannot show.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from tasks.config.components import COMMON_KEYS, FIELD_TYPES, Component
from tasks.config.parsing import Loc, dump_yaml, format_path, locate_inside, read_yaml
from tasks.config.schema import METRIC_NAMES, SECRET_METRICS, TaskConfig

Data = dict[str, Any]
SECTION_PATHS: Mapping[str, tuple[str, ...]] = {
    "context": ("context",),
    "input": ("input",),
    "output": ("output",),
    "create": ("metadata", "create"),
    "validate": ("metadata", "validate"),
}
"""The path of each list of fields, by its name in URLs."""
STEP_KEYS: Mapping[str, tuple[str, ...]] = {
    "goal": ("version", "kind", "name", "summary", "language", "goal"),
    "fields": ("context", "input", "output", "metadata"),
    "answer": ("verdict", "metrics"),
    "words": ("instructions", "content_warning", "examples"),
    "judging": ("validation",),
    "limits": ("limits", "programs", "support", "battles"),
    "finish": (),
}
"""The steps of the wizard in order, with the configuration keys that each one sets."""
ARENA_STEPS = ("goal", "words", "finish")
SHOWN_KEYS: Mapping[str, Sequence[str]] = {
    "content_warning": ("text", "support"),
    "metrics": ("main", "also"),
    "verdict": (
        "type",
        "field",
        "fields",
        "threshold",
        "pattern",
        "forbidden",
        "question",
        "answers",
        "marked_is_wrong",
    ),
    "support": ("prompt_field", "minimal_edit", "examples", "suggestions"),
    "battles": ("pairs",),
}
"""The inner keys that the steps show, for keys that they do not show completely."""
CONFIG_KEYS = tuple(TaskConfig.__dataclass_fields__)


def parse_data(text: str) -> Data:
    """Return a configuration text as data. Raises ConfigError if it is not valid YAML."""
    data: Data = read_yaml(text).data
    return data


def format_data(data: Data) -> str:
    """Return data as YAML, with the keys in the order of the documentation."""
    return dump_yaml({key: data[key] for key in sorted(data, key=_get_step_index)})


def _get_step_index(key: str) -> int:
    if key in CONFIG_KEYS:
        return CONFIG_KEYS.index(key)
    return len(CONFIG_KEYS)


def list_steps(data: Data) -> tuple[str, ...]:
    """Return the wizard steps for a task of this kind, in order."""
    if data.get("kind") == "arena":
        return ARENA_STEPS
    return tuple(STEP_KEYS)


def get_value(data: Data, path: Loc, default: Any = None) -> Any:
    """Return the value at a path, or the default."""
    value: Any = data
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return default
        value = value[key]
    return value


def set_value(data: Data, path: Sequence[str], value: Any) -> None:
    """Set the value at a path.

    None or an empty value removes the key, and then any mapping that became empty.
    """
    *parent_keys, last_key = path
    # The mappings on the way to the value, the outermost first.
    mappings = [data]
    for key in parent_keys:
        if not isinstance(mappings[-1].get(key), dict):  # null stands there where nothing does
            mappings[-1][key] = {}
        mappings.append(mappings[-1][key])
    if value in (None, "", [], {}):
        mappings[-1].pop(last_key, None)
    else:
        mappings[-1][last_key] = value
    # From the innermost outwards: removing a value may leave an empty mapping, and so on.
    for key, mapping in reversed(list(zip(parent_keys, mappings, strict=False))):
        if not mapping[key]:
            del mapping[key]


def get_fields(data: Data, section: str) -> list[Data]:
    """Return the mutable list of a section's fields. Fields given by name become mappings."""
    path, mapping = SECTION_PATHS[section], data
    for key in path[:-1]:
        mapping[key] = mapping.get(key) or {}
        mapping = mapping[key]
    fields = []
    for item in mapping.get(path[-1]) or []:
        if isinstance(item, str):
            fields.append({"name": item})
        else:
            fields.append(item)
    mapping[path[-1]] = fields
    return fields


def copy_all_fields(data: Data) -> list[Data]:
    """Return copies of the fields of all sections."""
    # A copy, since `get_fields` turns plain names into mappings.
    data_copy = deepcopy(data)
    fields: list[Data] = []
    for section in SECTION_PATHS:
        fields += get_fields(data_copy, section)
    return fields


def list_field_names(data: Data, section: str, *types: str) -> list[str]:
    """Return the names of a section's fields that have one of these types."""
    matching_names = []
    for field in get_fields(deepcopy(data), section):
        if field.get("name") and field.get("type") in types:
            matching_names.append(str(field["name"]))
    return matching_names


def repeats_input(data: Data, section: str, field: Data) -> bool:
    """Return whether a field is an output that has the name of an input or no type of its own."""
    inputs = {item.get("name") for item in get_fields(deepcopy(data), "input")}
    return section == "output" and (field.get("name") in inputs or "type" not in field)


def find_free_name(data: Data, label: str) -> str:
    """Return an unused field name derived from a label."""
    plain_label = "".join(c if c.isascii() and c.isalnum() else " " for c in label.lower())
    base_name = "_".join(plain_label.split())[:50] or "field"
    base_name = base_name if base_name[0].isalpha() else f"field_{base_name}"
    taken_names = {field.get("name") for field in copy_all_fields(data)}
    # One name more than are taken, so that one of them is free.
    candidate_names = (
        base_name if n == 1 else f"{base_name}_{n}" for n in range(1, len(taken_names) + 2)
    )
    return next(name for name in candidate_names if name not in taken_names)


def move_field(
    data: Data, section: str, index: int, target_section: str, target_index: int
) -> None:
    """Move a field to index `target_index` of the target section. Raises IndexError."""
    field = get_fields(data, section).pop(index)
    get_fields(data, target_section).insert(max(target_index, 0), field)
    tidy_data(data)


def remove_field(data: Data, section: str, index: int) -> None:
    """Remove a field. Raises IndexError."""
    del get_fields(data, section)[index]
    tidy_data(data)


FIELD_REFERENCE_PATHS: Sequence[tuple[str, ...]] = (
    ("goal", "field"),
    ("verdict", "field"),
    ("verdict", "fields"),
    ("support", "prompt_field"),
    ("slices",),
)
"""The paths of settings that name a field, except the settings of fields and of examples."""


def rename_field(data: Data, old_name: str, new_name: str) -> None:
    """Rename a field and all references to it."""
    for section in SECTION_PATHS:
        for field in get_fields(data, section):
            _rename_in_field(field, old_name, new_name)
    if get_value(data, ("goal", "field")) == old_name:
        goal_text = str(get_value(data, ("goal", "text"), ""))
        set_value(data, ("goal", "text"), goal_text.replace(f"{{{old_name}}}", f"{{{new_name}}}"))
    for path in FIELD_REFERENCE_PATHS:
        value = get_value(data, path)
        if value == old_name:
            set_value(data, path, new_name)
        elif isinstance(value, list):
            set_value(data, path, [_rename_value(name, old_name, new_name) for name in value])
    # The examples name fields as keys of their values.
    for kind in ("good", "bad"):
        for example in get_value(data, ("examples", kind), ()):
            _rename_in_example(example, old_name, new_name)
    tidy_data(data)


def _rename_value(name: Any, old_name: str, new_name: str) -> Any:
    """Return `new_name` for `old_name`; other values are unchanged."""
    if name == old_name:
        return new_name
    return name


def _rename_in_field(field: Data, old_name: str, new_name: str) -> None:
    """Replace a field's name in a field's entry, as its own name or as a reference."""
    for path in (("reference",), ("when", "field"), ("name",)):
        if get_value(field, path) == old_name:
            set_value(field, path, new_name)


def _rename_in_example(example: Data, old_name: str, new_name: str) -> None:
    """Rename a field in the values of an example, without changing their order."""
    for section in ("context", "input"):
        values = example.get(section) or {}
        if old_name in values:
            renamed_values = {}
            for name, value in values.items():
                renamed_values[_rename_value(name, old_name, new_name)] = value
            example[section] = renamed_values


def tidy_data(data: Data) -> None:
    """Remove empty lists of fields, and shorten outputs that have only a name."""
    for path in SECTION_PATHS.values():
        # Putting what is there removes it where it is empty.
        set_value(data, path, get_value(data, path))
    if "output" in data:
        data["output"] = list(map(_shorten_output, data["output"]))


def _shorten_output(output: Any) -> Any:
    """Return an output in its short form, which is only its name if it has no other keys."""
    if isinstance(output, dict) and output.keys() == {"name"}:
        return output["name"]
    return output


def complete_data(data: Data) -> Data:
    """Return a copy of the data with a missing verdict and metrics derived from its fields."""
    # A copy, so that what is filled in here never becomes part of the draft.
    full_data = {"version": 1, **deepcopy(data)}
    tidy_data(full_data)
    if full_data.get("kind") == "arena":
        return full_data
    answer, is_compared = _find_answer(full_data)
    answer_type = str(answer.get("type", ""))
    if "verdict" not in full_data and answer:
        full_data["verdict"] = _choose_verdict(answer, answer_type, is_compared)
    if "metrics" not in full_data and answer:
        full_data["metrics"] = {"main": _choose_metric(answer, answer_type)}
    # Where the model is wrong in its own words, only a validator can say what is right.
    if answer_type in ("text", "long_text") and not is_compared and "validation" not in full_data:
        full_data["validation"] = {"corrections": True}
    return full_data


def _find_answer(data: Data) -> tuple[Data, bool]:
    """Return the model's answer field, and whether people fill in the same field.

    Without an answer field, return {} and False.
    """
    inputs = {item.get("name"): item for item in get_fields(deepcopy(data), "input")}
    outputs = []
    for item in get_fields(deepcopy(data), "output"):
        if item.get("type") != "prob":
            outputs.append(item)
    if not outputs:
        return {}, False
    # An output that people fill in too comes first: the verdict can compare it.
    answer = min(outputs, key=lambda item: item.get("name") not in inputs)
    name = answer.get("name")
    return {**inputs.get(name, {}), **answer}, name in inputs


def find_answer_names(data: Data) -> list[str]:
    """Return the names of the fields that both people and the model fill in.

    Without such fields, return the name of the model's first answer.
    """
    inputs = {item.get("name") for item in get_fields(deepcopy(data), "input")}
    outputs = get_fields(deepcopy(data), "output")
    answers = []
    for item in outputs:
        if item.get("type") != "prob":
            answers.append(str(item.get("name", "")))
    return [name for name in answers if name in inputs] or answers[:1]


def list_fitting_rules(data: Data) -> list[str]:
    """Return the verdict rules that fit the model's answer."""
    answer, is_compared = _find_answer(data)
    answer_type = str(answer.get("type", ""))
    is_text = answer_type in ("text", "long_text")
    rules: list[str] = []
    if is_compared and (rule := _choose_rule(answer, answer_type)):
        rules = [rule]
    elif is_compared:
        text_rules = ["string_f1", "exact_match", "contains"]
        rules = ["exact_match"]
        if is_text or answer_type == "span":
            rules = text_rules
    if is_text:
        rules.append("pattern")
    if any("{secret}" in str(field.get("system")) for field in copy_all_fields(data)):
        rules.append("secret")
    if is_text and list_field_names(data, "input", "criteria"):
        rules.append("criteria")
    rules.append("ask_user")
    return rules


def list_fitting_metrics(data: Data) -> list[str]:
    """Return the metrics that can score the model's answer; see `find_unsuitable_metrics`."""
    answer, _is_compared = _find_answer(data)
    answer_type = FIELD_TYPES.get(str(answer.get("type")))
    verdict = get_value(complete_data(data), ("verdict", "type"))
    if verdict == "secret":
        return [name for name in METRIC_NAMES if name in SECRET_METRICS]
    special_metrics: set[str] = set()
    for field_type in FIELD_TYPES.values():
        special_metrics.update(field_type.own_metrics)
    own_metrics: tuple[str, ...] = ()
    if answer_type:
        own_metrics = answer_type.own_metrics
    fitting_metrics = []
    for name in METRIC_NAMES:
        # A metric of a special type scores only answers of that type.
        if name not in SECRET_METRICS and (name in own_metrics or name not in special_metrics):
            fitting_metrics.append(name)
    return fitting_metrics


def _choose_verdict(answer: Data, answer_type: str, is_compared: bool) -> Data:
    if not is_compared:
        return {"type": "ask_user"}
    if rule := _choose_rule(answer, answer_type):
        return {"type": rule, "field": answer["name"]}
    if answer_type in ("text", "long_text", "span"):
        return {"type": "string_f1", "field": answer["name"]}
    return {"type": "exact_match", "fields": [answer["name"]]}


def _choose_metric(answer: Data, answer_type: str) -> str:
    rule = _choose_rule(answer, answer_type)
    text_metrics = {"text": "rouge_l", "long_text": "rouge_l", "span": "squad_f1"}
    return {"spans_f1": "spans_f1", "rank": "pair_accuracy"}.get(
        rule, text_metrics.get(answer_type, "accuracy")
    )


def _choose_rule(answer: Data, answer_type: str) -> str:
    if answer_type not in FIELD_TYPES:
        return ""
    rank = bool(answer.get("rank"))
    return FIELD_TYPES[answer_type].get_verdict_rule(
        Component.model_construct(name="answer", type=answer_type, rank=rank)
    )


class PreviewWords(NamedTuple):
    """What a preview shows in place of the texts that an owner has yet to write."""

    goal: str = "…"
    field: str = "…"
    answer: str = "…"


DEFAULT_PREVIEW_WORDS = PreviewWords()


def build_preview(data: Data, words: PreviewWords = DEFAULT_PREVIEW_WORDS) -> Data:
    """Return the completed data for a preview, with placeholders for missing required settings."""
    preview = deepcopy(data)
    preview["name"] = preview.get("name") or "…"
    if preview.get("kind") == "arena":
        return complete_data(preview)
    set_value(preview, ("goal", "text"), get_value(preview, ("goal", "text")) or words.goal)
    for section in SECTION_PATHS:
        if section == "output":
            continue
        for field in get_fields(preview, section):
            field_type = FIELD_TYPES.get(str(field.get("type")), _UnknownType)
            if "labels" in field_type.keys and len(field.get("labels") or ()) < 2:
                field["labels"] = ["A", "B"]
    # A task needs something for the model to read, and an answer; both are filled in to be shown.
    if not _has_readable_field(preview):
        field = {"name": "field", "type": "long_text", "label": words.field, "max_length": 300}
        get_fields(preview, "input").append(field)
    if not get_fields(preview, "output"):
        preview["output"] = [{"name": "model_answer", "type": "long_text", "label": words.answer}]
    return complete_data(preview)


def _has_readable_field(data: Data) -> bool:
    """Return whether the model has any field to read."""
    outputs = {field.get("name") for field in get_fields(deepcopy(data), "output")}
    if data.get("context"):
        return True
    for field in get_fields(deepcopy(data), "input"):
        field_type = FIELD_TYPES.get(str(field.get("type")))
        if field_type and field_type.is_read and field.get("name") not in outputs:
            return True
    return False


def is_step_begun(data: Data, step: str) -> bool:
    """Return whether anything is set in a step. Errors are shown only in such steps."""
    return any(key in data for key in STEP_KEYS[step] if key != "version")


class _UnknownType:
    keys = ()


def find_hidden_paths(data: Data) -> list[str]:
    """Return the paths of the settings that no step shows. The wizard leaves them unchanged."""
    known_keys: set[str] = set()
    for keys in STEP_KEYS.values():
        known_keys.update(keys)
    paths = []
    for key in data:
        if key not in known_keys:
            paths.append(key)
    for key, shown_keys in SHOWN_KEYS.items():
        value = data.get(key)
        if isinstance(value, dict):
            paths += [format_path((key, inner)) for inner in value if inner not in shown_keys]
    for section, path in SECTION_PATHS.items():
        for index, field in enumerate(get_fields(deepcopy(data), section)):
            field_type = FIELD_TYPES.get(str(field.get("type")), _UnknownType)
            unknown_keys = field.keys() - {"labels"} - set(COMMON_KEYS) - set(field_type.keys)
            for key in sorted(unknown_keys):
                paths.append(format_path(locate_inside(path, index, key)))
    return paths


def find_step(path: str) -> str:
    """Return the step in which a problem at this path can be corrected; `finish` if none."""
    first_key = path.partition(".")[0].partition("[")[0]
    return next((step for step, keys in STEP_KEYS.items() if first_key in keys), "finish")


def parse_field_path(path: str) -> tuple[str, int] | None:
    """Return the section and index of the field that a path refers to; None for other paths.

    >>> parse_field_path("metadata.create[1].when")
    ('create', 1)
    """
    for section, section_path in SECTION_PATHS.items():
        prefix = f"{'.'.join(section_path)}["
        if path.startswith(prefix):
            return section, int(path.removeprefix(prefix).partition("]")[0])
    return None
