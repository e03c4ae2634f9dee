"""The fields in which people without YAML write a plan, and the plan that they give. Pure.

The plans are of decisions: people read a case, in some arms talk to a model, and give an answer
that is compared with a key.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.text.words import gettext_noop
from dynabench.studies.rules.setup import MAX_CODE_CHARS
from tasks.config.parsing import dump_yaml

CASE, ANSWER, TALK = "case", "answer", "talk"
"""The fields of the task that a filled-in form gives. The columns of its file are the first two."""
BEFORE, AFTER = "sure_before", "sure_after"
MAX_STUDY_CHARS = 31
"""The longest code of a study, so that those of its arms are no longer than MAX_CODE_CHARS."""
assert MAX_STUDY_CHARS == MAX_CODE_CHARS - 9

Values = Mapping[str, Any]


@dataclass(frozen=True)
class OutcomeChoice:
    """An outcome that people can choose, in words, and what the plan assumes if they say nothing.

    sd: the standard deviation; None for shares, which have none.
    """

    measure: str
    name: str
    words: str
    help: str
    mean: float
    sd: float | None = None


OUTCOMES = {
    choice.measure: choice
    for choice in (
        OutcomeChoice(
            "correct",
            "right_answers",
            gettext_noop("Right answers"),
            gettext_noop("The share of cases in which the person's answer is the key."),
            mean=0.5,
        ),
        OutcomeChoice(
            "seconds",
            "time",
            # Translators: an outcome of a study: how long people need
            gettext_noop("Time per case"),
            gettext_noop("Seconds from reading a case to the answer. Enter the median."),
            mean=90,
            sd=0.6,
        ),
        OutcomeChoice(
            "answer",
            "confidence",
            gettext_noop("Change of confidence"),
            gettext_noop("We ask a question from 1 to 5 before and after the cases."),
            mean=0,
            sd=1.2,
        ),
        OutcomeChoice(
            "harm",
            "harm",
            gettext_noop("Harmful content shown"),
            gettext_noop("How many reported texts and answers a person was shown."),
            mean=0.5,
            sd=1.0,
        ),
    )
}
"""The outcomes of decisions, by their measure."""


@dataclass(frozen=True)
class StudyTemplate:
    """A design to begin with: what it is for, and the fields filled in as an example.

    arms: name, what differs, whether there is a model, and instructions of its own.
    """

    key: str
    title: str
    summary: str
    design: str
    arms: Sequence[tuple[str, str, bool, str]]
    changes: Values


COMMON: dict[str, Any] = {
    "title": "Do people decide better with a model?",
    "question": "Do people who talk to a model choose the right answer more often?",
    "task_name": "Is this claim true?",
    "instructions": "Read the claim. Decide whether it is true. Use any source that you like.",
    "case_label": "Claim",
    "answer_label": "Is the claim true?",
    "answers": "true\nfalse\nnobody knows",
    "outcome-correct": "on",
    "sure_label": "How well do you know such facts, from 1 to 5?",
    "people": "200",
    "each": "4",
    "contexts": "40",
    "effect": "0.3",
    "power": "0.8",
    "min_seconds": "5",
    "excluded_percent": "3",
    "consent": "You decide about a few claims. We keep your answers and conversations without your "
    "name. You can stop at any time.",
    "ethics": "The claims are about general knowledge. Wrong answers have no consequences.",
    "way": "link",
    "minutes": "30",
    "currency": "EUR",
    "pay": "1.50",
    "completion_url": "https://panel.example/done?cc={code}",
    "code_done": "DONE",
    "code_returned": "BACK",
}
SCRIPT_REPLY = "I think this is true."
"""What the rehearsal's model always says, until people name their own."""

TEMPLATES = {
    template.key: template
    for template in (
        StudyTemplate(
            "with-or-without",
            gettext_noop("With a model or without"),
            gettext_noop("Two groups decide about cases. One of them can ask a model."),
            "between",
            (
                ("Without", "People decide as they are used to", False, ""),
                ("With a model", "People talk to a model before they answer", True, ""),
            ),
            {},
        ),
        StudyTemplate(
            "several-models",
            gettext_noop("Four arms with a key"),
            gettext_noop("Three models and a control without one, each with its own group."),
            "between",
            (
                ("Control", "No model: people use any source that they like", False, ""),
                ("Model A", "People talk to model A before they answer", True, ""),
                ("Model B", "People talk to model B before they answer", True, ""),
                ("Model C", "People talk to model C before they answer", True, ""),
            ),
            {"people": "600", "each": "2", "outcome-answer": "on"},
        ),
        StudyTemplate(
            "within",
            gettext_noop("The same people, with and without"),
            gettext_noop("Each person goes through both arms in random order."),
            "within",
            (
                ("Without", "People decide as they are used to", False, ""),
                ("With a model", "People talk to a model before they answer", True, ""),
            ),
            {"people": "60"},
        ),
        StudyTemplate(
            "instructions",
            gettext_noop("Two instructions"),
            gettext_noop("Two groups decide about the same cases after different instructions."),
            "between",
            (
                ("Short", "A short instruction", False, ""),
                (
                    "Doubt",
                    "The instruction asks for a reason against the first impression",
                    False,
                    "Read the claim. Think of one reason against your first impression. Then "
                    "decide whether the claim is true.",
                ),
            ),
            {
                "title": "Does a moment of doubt help?",
                "question": "Do people decide better if they first think of a counter-argument?",
            },
        ),
    )
}
"""The designs that people choose from, in order."""


def list_initial_values(template: StudyTemplate) -> dict[str, Any]:
    """Return what the fields of a new draft contain."""
    values = {**COMMON, **template.changes}
    values["arms"], values["hypotheses"] = len(template.arms), len(template.arms) - 1
    for index, (name, differs, has_model, instructions) in enumerate(template.arms):
        values[f"arm-{index}-name"] = name
        values[f"arm-{index}-differs"] = differs
        values[f"arm-{index}-model"] = "script" if has_model else "none"
        values[f"arm-{index}-reply"] = SCRIPT_REPLY if has_model else ""
        values[f"arm-{index}-instructions"] = instructions
    # The first arm is the one that the others are compared with.
    for index in range(values["hypotheses"]):
        values[f"hypothesis-{index}-arm"] = str(index + 1)
        values[f"hypothesis-{index}-compared_with"] = "0"
        values[f"hypothesis-{index}-outcome"] = "correct"
        values[f"hypothesis-{index}-expected"] = "higher"
    for choice in OUTCOMES.values():
        values[f"mean-{choice.measure}"] = f"{choice.mean:g}"
        if choice.sd is not None:
            values[f"sd-{choice.measure}"] = f"{choice.sd:g}"
    return values


def make_name(words: str, fallback: str) -> str:
    """Return a name of a plan for what a person called it.

    >>> make_name("With a model", "arm_1")
    'with_a_model'
    >>> make_name("模型", "arm_1")
    'arm_1'
    """
    # Names are part of addresses and of columns in files, so they are plain letters.
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:30]
    return name if name[:1].isalpha() else fallback


def make_code(title: str, suffix: str) -> str:
    """Return the code of a study for its title. suffix: makes it different from all others.

    >>> make_code("Do people decide better with a model?", "7f3a")
    'do-people-decide-bet-7f3a'
    """
    plain = make_name(title, "study").replace("_", "-")
    return f"{plain[: MAX_STUDY_CHARS - len(suffix) - 7].strip('-')}-{suffix}"


def build_plan_text(values: Values) -> str:
    """Return the plan in YAML that filled-in fields give.

    values: of the form, with `code`, `design`, `arms` and `hypotheses` as lists, and `outcomes` by
    measure. Arms in hypotheses are indices.
    """
    arms = [_build_arm(index, arm) for index, arm in enumerate(values["arms"])]
    hypotheses = []
    for row in values["hypotheses"]:
        hypotheses.append(
            {
                "arm": arms[row["arm"]]["name"],
                "compared_with": arms[row["compared_with"]]["name"],
                "outcome": OUTCOMES[row["outcome"]].name,
                "expected": row["expected"],
            }
        )
    plan: dict[str, Any] = {
        "version": 1,
        "study": values["code"],
        "title": values["title"],
        "question": values["question"],
        "arms": arms,
        "design": values["design"],
        "outcomes": [_build_outcome(*pair) for pair in values["outcomes"].items()],
        "hypotheses": hypotheses,
    }
    # Without a number nobody is excluded, and the plan says nothing of it.
    if values["min_seconds"]:
        share = values["excluded_percent"] / 100
        plan["exclude"] = [
            {"measure": "seconds", "below": values["min_seconds"], "expected_share": share}
        ]
    plan["size"] = {key: values[key] for key in ("people", "each", "contexts", "effect", "power")}
    plan["setup"] = {"task": _build_task(values), "campaign": _build_campaign(values)}
    return dump_yaml(plan)


def _build_arm(index: int, arm: Values) -> dict[str, Any]:
    """Return an arm of the plan."""
    # Names in other scripts have no plain letters, so such arms are numbered.
    parts = {"name": make_name(arm["name"], f"arm_{index + 1}"), "differs": arm["differs"]}
    if arm["model"] == "script":
        options = {"label": arm["reply"] or SCRIPT_REPLY}
        parts["model"] = {"adapter": "scripted", "url": "http://scripted.test", "options": options}
    elif arm["model"] == "api":
        options = {"model": arm["model_name"]}
        parts["model"] = {"adapter": "openai_chat", "url": arm["url"], "options": options}
    if arm["instructions"]:
        parts["instructions"] = arm["instructions"]
    return parts


def _build_outcome(measure: str, assumption: Values) -> dict[str, Any]:
    """Return an outcome of the plan with what it assumes."""
    parts = {"name": OUTCOMES[measure].name, "measure": measure, "assume": dict(assumption)}
    # It is a change: the same question is asked before and after.
    if measure == "answer":
        parts |= {"question": AFTER, "minus": BEFORE}
    return parts


def _build_task(values: Values) -> dict[str, Any]:
    """Return the configuration of the task, as a model's arm has it."""
    return {
        "version": 1,
        "name": values["task_name"],
        "instructions": values["instructions"],
        "goal": {"text": values["answer_label"]},
        "context": [{"name": CASE, "type": "long_text", "label": values["case_label"]}],
        "input": [
            {"name": TALK, "type": "chat", "label": "Ask the model", "max_turns": 10},
            {
                "name": ANSWER,
                "type": "multiclass",
                "label": values["answer_label"],
                "labels": list(values["answers"]),
            },
        ],
        "output": [{"name": "reply", "type": "long_text", "label": "The model's answer"}],
        "verdict": {"type": "decide", "fields": [ANSWER]},
        "metrics": {"main": "exact_match"},
        "limits": {"tries_per_context": 1},
    }


def _build_campaign(values: Values) -> dict[str, Any]:
    """Return the campaign of all arms, with the questions of the outcome `answer`."""
    keys = ("consent", "ethics", "way", "minutes", "currency", "pay_task")
    campaign = {key: values[key] for key in keys}
    # Only panels have them, and a campaign refuses an address that it can't use.
    if values["way"] != "account":
        campaign |= {key: values[key] for key in ("completion_url", "code_done", "code_returned")}
    if "answer" in values["outcomes"]:
        scale = {"type": "number", "label": values["sure_label"], "minimum": 1, "maximum": 5}
        campaign["questions"] = {
            "questions": [{"name": BEFORE, **scale}],
            "after": [{"name": AFTER, **scale}],
        }
    return campaign
