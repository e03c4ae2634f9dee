"""A configuration that is being put together: plain data of YAML, which may lack anything.

What is here changes the data in place, and leaves alone what the steps cannot show.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from tasks.config.components import COMMON_KEYS, FIELD_TYPES, Component
from tasks.config.parsing import Loc, dump_yaml, path_of, read_yaml
from tasks.config.schema import METRICS, OF_SECRETS, TaskConfig

Data = dict[str, Any]
PLACES: Mapping[str, tuple[str, ...]] = {
    "context": ("context",),
    "input": ("input",),
    "output": ("output",),
    "create": ("metadata", "create"),
    "validate": ("metadata", "validate"),
}
"""Where fields stand, by the word in addresses."""
STEPS: Mapping[str, tuple[str, ...]] = {
    "goal": ("version", "kind", "name", "summary", "language", "goal"),
    "fields": ("context", "input", "output", "metadata"),
    "answer": ("verdict", "metrics"),
    "words": ("instructions", "content_warning", "examples"),
    "judging": ("validation",),
    "limits": ("limits", "programs", "support", "battles"),
    "finish": (),
}
"""The steps in their order, with the keys that each is about."""
OF_ARENAS = ("goal", "words", "finish")
SHOWN: Mapping[str, Sequence[str]] = {
    "content_warning": ("text", "support"),
    "metrics": ("main", "also"),
    "verdict": (
        *("type", "field", "fields", "threshold", "pattern", "forbidden"),
        *("question", "answers", "marked_is_wrong"),
    ),
    "support": ("prompt_field", "minimal_edit", "examples", "suggestions"),
    "battles": (),
}
"""What the steps show of a key that they do not show wholly."""
KEYS = tuple(TaskConfig.__dataclass_fields__)


def data_of(text: str) -> Data:
    """The data of a text. Raises ConfigError where it is no YAML."""
    found: Data = read_yaml(text).data
    return found


def text_of(data: Data) -> str:
    """YAML with the keys in the order in which the documentation explains them."""
    return dump_yaml({key: data[key] for key in sorted(data, key=_place)})


def _place(key: str) -> int:
    return KEYS.index(key) if key in KEYS else len(KEYS)


def steps_of(data: Data) -> tuple[str, ...]:
    """The steps that such a task has."""
    return OF_ARENAS if data.get("kind") == "arena" else tuple(STEPS)


def get(data: Data, path: Loc, default: Any = None) -> Any:
    """What stands at a path; the default where nothing does."""
    found: Any = data
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return default
        found = found[key]
    return found


def put(data: Data, path: Sequence[str], value: Any) -> None:
    """Let a value stand at a path; None or an empty one: nothing, nor an empty mapping around."""
    *above, last = path
    holders = [data]
    for key in above:
        if not isinstance(holders[-1].get(key), dict):  # null stands there where nothing does
            holders[-1][key] = {}
        holders.append(holders[-1][key])
    if value in (None, "", [], {}):
        holders[-1].pop(last, None)
    else:
        holders[-1][last] = value
    for key, holder in reversed([*zip(above, holders, strict=False)]):
        if not holder[key]:
            del holder[key]


def fields_in(data: Data, place: str) -> list[Data]:
    """The fields of a place, whose list may be changed; an output may be no more than its name."""
    path, holder = PLACES[place], data
    for key in path[:-1]:
        holder[key] = holder.get(key) or {}
        holder = holder[key]
    fields = [{"name": one} if isinstance(one, str) else one for one in holder.get(path[-1]) or []]
    holder[path[-1]] = fields
    return fields


def all_fields(data: Data) -> list[Data]:
    """The fields of all places, in copies."""
    copied = deepcopy(data)
    return [field for place in PLACES for field in fields_in(copied, place)]


def names(data: Data, place: str, *types: str) -> list[str]:
    """The names of a place's fields of these types."""
    found = fields_in(deepcopy(data), place)
    return [str(one["name"]) for one in found if one.get("name") and one.get("type") in types]


def is_mirror(data: Data, place: str, field: Data) -> bool:
    """Whether an output only says that the model answers what people fill in."""
    inputs = {one.get("name") for one in fields_in(deepcopy(data), "input")}
    return place == "output" and (field.get("name") in inputs or "type" not in field)


def free_name(data: Data, wanted: str) -> str:
    """A name that no field has, from the words of a label."""
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in wanted.lower())
    base = "_".join(letters.split())[:50] or "field"
    base = base if base[0].isalpha() else f"field_{base}"
    taken = {one.get("name") for one in all_fields(data)}
    numbered = (base if n == 1 else f"{base}_{n}" for n in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def move_field(data: Data, place: str, index: int, to: str, at: int) -> None:
    """Let a field stand elsewhere: `at` is its index there. Raises IndexError."""
    field = fields_in(data, place).pop(index)
    fields_in(data, to).insert(max(at, 0), field)
    tidy(data)


def remove_field(data: Data, place: str, index: int) -> None:
    """Take a field away. Raises IndexError."""
    del fields_in(data, place)[index]
    tidy(data)


NAMES: Sequence[tuple[str, ...]] = (
    ("goal", "field"),
    ("verdict", "field"),
    ("verdict", "fields"),
    ("support", "prompt_field"),
    ("slices",),
)
"""Where fields are named, besides by other fields and in examples."""


def rename_field(data: Data, before: str, after: str) -> None:
    """Let what refers to a field by its name go on doing so."""
    for field in (one for place in PLACES for one in fields_in(data, place)):
        for inner in (("reference",), ("when", "field"), ("name",)):
            if get(field, inner) == before:
                put(field, inner, after)
    if get(data, ("goal", "field")) == before:
        words = str(get(data, ("goal", "text"), ""))
        put(data, ("goal", "text"), words.replace(f"{{{before}}}", f"{{{after}}}"))
    for path in NAMES:
        held = get(data, path)
        new = [after if one == before else one for one in held] if isinstance(held, list) else after
        if held == before or isinstance(held, list):
            put(data, path, new)
    for example in (one for kind in ("good", "bad") for one in get(data, ("examples", kind), ())):
        for part in ("context", "input"):
            if before in (held := example.get(part) or {}):
                example[part] = {after if key == before else key: one for key, one in held.items()}
    tidy(data)


def tidy(data: Data) -> None:
    """Take empty lists of fields away, and let an output be its name where it is no more."""
    for path in PLACES.values():
        put(data, path, get(data, path))
    if "output" in data:
        data["output"] = [
            one["name"] if isinstance(one, dict) and one.keys() == {"name"} else one
            for one in data["output"]
        ]


def completed(data: Data) -> Data:
    """The data with what follows from its fields where nobody has said it: verdict and metrics."""
    full = {"version": 1, **deepcopy(data)}
    tidy(full)
    if full.get("kind") == "arena":
        return full
    answer, is_compared = _answer(full)
    kind = str(answer.get("type", ""))
    if "verdict" not in full and answer:
        full["verdict"] = _verdict(answer, kind, is_compared)
    if "metrics" not in full and answer:
        full["metrics"] = {"main": _metric(answer, kind)}
    if kind in ("text", "long_text") and not is_compared and "validation" not in full:
        full["validation"] = {"corrections": True}
    return full


def _answer(data: Data) -> tuple[Data, bool]:
    """What the model answers, and whether people give the same field to compare."""
    inputs = {one.get("name"): one for one in fields_in(deepcopy(data), "input")}
    outputs = [one for one in fields_in(deepcopy(data), "output") if one.get("type") != "prob"]
    for output in sorted(outputs, key=lambda one: one.get("name") not in inputs):
        return {**inputs.get(output.get("name"), {}), **output}, output.get("name") in inputs
    return {}, False


def answer_of(data: Data) -> list[str]:
    """The names of what people give and the model answers; else of what the model answers."""
    inputs = {one.get("name") for one in fields_in(deepcopy(data), "input")}
    outputs = fields_in(deepcopy(data), "output")
    answers = [str(one.get("name", "")) for one in outputs if one.get("type") != "prob"]
    return [name for name in answers if name in inputs] or answers[:1]


def rules_for(data: Data) -> list[str]:
    """The verdict rules that fit what the model answers."""
    answer, is_compared = _answer(data)
    kind = str(answer.get("type", ""))
    is_text = kind in ("text", "long_text")
    rules: list[str] = []
    if is_compared and (rule := _rule(answer, kind)):
        rules = [rule]
    elif is_compared:
        texts = ["string_f1", "exact_match", "contains"]
        rules = texts if is_text or kind == "span" else ["exact_match"]
    if is_text:
        rules.append("pattern")
    if any("{secret}" in str(one.get("system")) for one in all_fields(data)):
        rules.append("secret")
    return [*rules, "ask_user"]


def metrics_for(data: Data) -> list[str]:
    """The metrics that can score what the model answers, as `unfit_metrics` checks them."""
    answer, _is_compared = _answer(data)
    kind = FIELD_TYPES.get(str(answer.get("type")))
    verdict = get(completed(data), ("verdict", "type"))
    if verdict == "secret":
        return [name for name in METRICS if name in OF_SECRETS]
    special = {name for one in FIELD_TYPES.values() for name in one.own_metrics}
    own = kind.own_metrics if kind else ()
    return [
        name for name in METRICS if name not in OF_SECRETS and (name in own or name not in special)
    ]


def _verdict(answer: Data, kind: str, is_compared: bool) -> Data:
    if not is_compared:
        return {"type": "ask_user"}
    if rule := _rule(answer, kind):
        return {"type": rule, "field": answer["name"]}
    if kind in ("text", "long_text", "span"):
        return {"type": "string_f1", "field": answer["name"]}
    return {"type": "exact_match", "fields": [answer["name"]]}


def _metric(answer: Data, kind: str) -> str:
    rule = _rule(answer, kind)
    texts = {"text": "rouge_l", "long_text": "rouge_l", "span": "squad_f1"}
    return {"spans_f1": "spans_f1", "rank": "pair_accuracy"}.get(rule, texts.get(kind, "accuracy"))


def _rule(answer: Data, kind: str) -> str:
    if kind not in FIELD_TYPES:
        return ""
    rank = bool(answer.get("rank"))
    return FIELD_TYPES[kind].rule(Component.model_construct(name="answer", type=kind, rank=rank))


def previewed(data: Data) -> Data:
    """As `completed`, with stand-ins for what every task needs, so that it can be looked at."""
    shown = deepcopy(data)
    shown["name"] = shown.get("name") or "…"
    if shown.get("kind") == "arena":
        return completed(shown)
    put(shown, ("goal", "text"), get(shown, ("goal", "text")) or "…")
    for field in (one for place in PLACES if place != "output" for one in fields_in(shown, place)):
        kind = FIELD_TYPES.get(str(field.get("type")), _Nothing)
        if "labels" in kind.keys and len(field.get("labels") or ()) < 2:
            field["labels"] = ["A", "B"]
    if not _is_read(shown):
        field = {"name": "field", "type": "long_text", "label": "…", "max_length": 300}
        fields_in(shown, "input").append(field)
    if not fields_in(shown, "output"):
        shown["output"] = [{"name": "model_answer", "type": "long_text", "label": "…"}]
    return completed(shown)


def _is_read(data: Data) -> bool:
    """Whether the model is given something to read."""
    outputs = {one.get("name") for one in fields_in(deepcopy(data), "output")}
    given = [one for one in fields_in(deepcopy(data), "input") if one.get("name") not in outputs]
    kinds = [FIELD_TYPES[str(one["type"])] for one in given if one.get("type") in FIELD_TYPES]
    return bool(data.get("context")) or any(kind.is_read for kind in kinds)


def is_begun(data: Data, step: str) -> bool:
    """Whether anything of a step was said; until then nothing in it is wrong."""
    return any(key in data for key in STEPS[step] if key != "version")


class _Nothing:
    keys = ()


def not_shown(data: Data) -> list[str]:
    """The paths of what no step shows; it stays as it is."""
    known = {key for keys in STEPS.values() for key in keys}
    paths = [key for key in data if key not in known]
    for key, shown in SHOWN.items():
        held = data.get(key)
        if isinstance(held, dict):
            paths += [path_of((key, inner)) for inner in held if inner not in shown]
    for place, path in PLACES.items():
        for index, field in enumerate(fields_in(deepcopy(data), place)):
            kind = FIELD_TYPES.get(str(field.get("type")), _Nothing)
            odd = field.keys() - {*COMMON_KEYS, *kind.keys, "labels"}
            paths += [path_of((*path, index, key)) for key in sorted(odd)]
    return paths


def step_of(path: str) -> str:
    """The step in which what stands at a problem's path is mended; `finish`: in none."""
    first = path.partition(".")[0].partition("[")[0]
    return next((step for step, keys in STEPS.items() if first in keys), "finish")


def field_of(path: str) -> tuple[str, int] | None:
    """The place and index of the field that a path is about.

    >>> field_of("metadata.create[1].when")
    ('create', 1)
    """
    for place, parts in PLACES.items():
        begin = f"{'.'.join(parts)}["
        if path.startswith(begin):
            return place, int(path.removeprefix(begin).partition("]")[0])
    return None
