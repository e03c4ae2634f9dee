"""Imports of rows to judge from a form: their fields, the preview, and storing the preview."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import User
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.columns import Matching, OtherFields
from tasks.contexts.files import Summary
from tasks.contexts.services import read_untrusted_file
from tasks.formats.base import UNKNOWN_TERMS, RecordLine, Terms, hash_record
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import is_blind_owner
from validation.consensus.claims import find_label_field, is_about_model
from validation.imports.load import import_examples
from validation.imports.summary import Summary as Stored
from validation.imports.task import ImportRefused, Options
from validation.judging.blind_services import build_claim_condition, note_readable_examples

UID, PREDICTION, MODEL = "uid", "prediction", "model"
ANSWER_TYPES = ("multiclass", "text", "long_text", "span")


def find_judged_fields(config: TaskConfig) -> OtherFields:
    """Return the fields of a row to be judged: those that judges read, and the answers to judge.

    The answers are the author's and a model's.
    Raises Refused if rows cannot represent the task's kind of answer.
    """
    answer = config.get_component(config.answer_field)
    if config.kind != "examples" or answer.type not in ANSWER_TYPES:
        raise Refused(
            _(
                "You can't import rows into this task, because its answers are neither labels "
                "nor texts."
            )
        )
    label_field, asks_about_model = (
        find_label_field(config),
        is_about_model(config, Example.Outcome.UNKNOWN),
    )
    components = [
        # A row of a file has all fields at once, so conditions do not apply.
        component.model_copy(
            update={"when": None, "required": component.required and not component.when}
        )
        for component in (*config.context, *config.input)
        if component.name != answer.name
    ]
    kind = "multiclass" if answer.type == "multiclass" else "long_text"
    required_names = not label_field and not asks_about_model
    answer_component = Component(
        name=answer.name, type=kind, labels=answer.labels, required=required_names
    )
    taken_names = {component.name for component in (*components, answer_component)}
    special_fields = {UID: False, PREDICTION: asks_about_model, MODEL: False}
    special_components = [
        Component(name=name, type="long_text", required=required)
        for name, required in special_fields.items()
        if name not in taken_names
    ]
    return OtherFields((*components, answer_component, *special_components))


def preview_rows(
    *, round: Round, lines: Iterable[bytes], file_name: str, matching: Matching | None = None
) -> Summary:
    """Return the summary of the rows that a file would add for judging. Stores nothing.

    Raises Refused, FileError.
    """
    if round.state == Round.State.RELEASED:
        raise Refused(
            _("%(round)s is released and can't change anymore. Choose another round.")
            % {"round": round}
        )
    if file_name.lower().endswith(".zip"):
        raise FileError(_("Upload a table of rows to judge, not an archive."))
    fields = find_judged_fields(round.task.config)
    return read_untrusted_file(lines, file_name, fields, round.task, (), matching)


def store_rows(
    *, round: Round, summary: Summary, file_name: str, actor: User, terms: Terms = UNKNOWN_TERMS
) -> Stored:
    """Store the valid rows of a preview, and queue them for judges. Raises Refused.

    Locks the task. A row is left out if the round already has a row with its uid. If the actor is
    an owner who judges blind, records that they know the labels.
    """
    config = round.task.config
    options = Options(
        file_name, task=round.task.code, round=round.number, skip_bad=True, judge=True,
        terms=terms, actor=actor,
    )  # fmt: skip
    try:
        # The preview has listed the bad rows.
        import_result = import_examples(
            lines=_iter_record_lines(summary, config), options=options, on_bad_line=lambda *_: None
        )
    except ImportRefused as error:
        raise Refused(str(error)) from None
    if is_blind_owner(actor, round.task):  # labels from their own file
        imported_examples = round.examples.filter(build_claim_condition(config), annotator=None)
        note_readable_examples(get_annotator(actor), imported_examples)
    return import_result


def _iter_record_lines(summary: Summary, config: TaskConfig) -> Iterator[RecordLine]:
    for row in summary.rows:
        yield RecordLine(str(row.line), b"", _build_row(row.values, config))


def _build_row(values: Mapping[str, Any], config: TaskConfig) -> dict[str, Any]:
    """Return a row to be judged as a history row without votes."""
    remaining_values = dict(values)
    metadata = dict(remaining_values.pop("metadata", None) or {})
    if tag := remaining_values.pop("tag", ""):
        metadata["tag"] = tag
    # Without a uid, it is derived from the row, so that a second import adds nothing.
    uid = str(remaining_values.pop(UID, "") or hash_record(remaining_values))
    component_names = {component.name for component in (*config.context, *config.input)}
    # If the task has a field with this name, it is not a model's answer.
    prediction = None if PREDICTION in component_names else remaining_values.pop(PREDICTION, None)
    model = None if MODEL in component_names else remaining_values.pop(MODEL, None)
    label = remaining_values.pop(config.answer_field, None)
    context = {
        component.name: remaining_values.pop(component.name)
        for component in config.context
        if component.name in remaining_values
    }
    return {
        "uid": uid,
        "context": context,
        "input": remaining_values,
        "author_label": label,
        "model_prediction": {"model": model or "imported", "label": prediction, "probs": None}
        if prediction
        else None,
        "metadata": metadata,
    }
