"""Which migrations the former release's code survives, and which lock no large table for long.

Migrations run while the old version serves: expand now, contract a release later
(docs/developers.md, "Change a model"). Pure: it looks at operations and at the state before them.
"""

from collections.abc import Container, Iterator

from django.db.migrations import operations as ops
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field, ManyToManyField
from django.db.models.expressions import Value
from django.db.models.fields import NOT_PROVIDED
from django.db.models.functions import Now

LARGE = {
    *("accounts.logentry", "accounts.annotator", "accounts.user"),
    *("annotation.assignment", "annotation.attempt", "annotation.example"),
    *("annotation.targetoutput", "evaluation.datasetrow", "evaluation.evaluationrun"),
    *("evaluation.score", "leaderboard.comparison", "leaderboard.resample", "leaderboard.turn"),
    *("tasks.context", "tasks.media", "validation.consensus", "validation.queueitem"),
    *("validation.judgelease", "validation.validation"),
}
"""Tables of a row or more for each example, answer, vote or person."""

NAMES = (ops.RenameField, ops.RenameModel, ops.AlterModelTable)
UNSEEN = (ops.RunPython, ops.RunSQL)
SETS = (ops.AlterUniqueTogether, ops.AlterIndexTogether, ops.AlterOrderWithRespectTo)


def problems(
    app: str, operations: list[Operation], before: ProjectState, known: Container[str]
) -> Iterator[str]:
    """What is wrong with the operations of a migration, a sentence each with the way out.

    before: the models as this migration finds them. known: those that the former release has, as
    app.model; other tables may change freely.
    """
    state = before.clone()
    for operation in operations:
        if isinstance(operation, ops.SeparateDatabaseAndState):
            yield from problems(app, operation.database_operations, state, known)
        else:
            yield from _problems(app, operation, state, known)
        operation.state_forwards(app, state)


def _problems(
    app: str, operation: Operation, state: ProjectState, known: Container[str]
) -> Iterator[str]:
    if isinstance(operation, UNSEEN):
        yield "runs code or SQL: does it work in batches, and do both versions read its rows?"
    label = f"{app}.{_model(operation)}"
    if label not in known:
        return
    if isinstance(operation, (ops.RemoveField, ops.DeleteModel)):
        yield f"{label}: the former release reads what goes; remove it one release later"
    elif isinstance(operation, (*NAMES, *SETS)):
        yield f"{label}: the former release knows the old name or rule; add a new one beside it"
    elif isinstance(operation, ops.AddField):
        yield from (f"{label}.{operation.name}: {why}" for why in _added(operation.field, label))
    elif isinstance(operation, ops.AlterField):
        old = state.models[app, _model(operation)].fields.get(operation.name)
        if old is not None:
            found = _altered(old, operation.field, label)
            yield from (f"{label}.{operation.name}: {why}" for why in found)
    elif isinstance(operation, ops.AddConstraint):
        yield f"{label}: the former release may break the constraint, and all rows are read locked"
    elif isinstance(operation, ops.AddIndex) and label in LARGE:
        yield f"{label}: an index keeps writers waiting; build it concurrently on PostgreSQL"


def _model(operation: Operation) -> str:
    name = getattr(operation, "model_name", None) or getattr(operation, "name", "")
    if isinstance(operation, ops.RenameModel):
        name = operation.old_name
    return (name or "").lower() if isinstance(name, str) else ""


def _added(field: Field, label: str) -> Iterator[str]:
    if isinstance(field, ManyToManyField):
        return
    default = field.db_default
    if default is NOT_PROVIDED and not field.null:
        yield "the former release stores rows without it; give it null=True or db_default"
    if default is not NOT_PROVIDED and not _is_constant(default):
        yield "db_default is computed for each row, which rewrites the table"
    if (field.db_index or field.unique) and label in LARGE:
        yield "its index keeps writers waiting; db_index=False, and build it concurrently"


def _is_constant(default: object) -> bool:
    return isinstance(default, (Value, Now)) or not hasattr(default, "resolve_expression")


def _altered(old: Field, new: Field, label: str) -> Iterator[str]:
    if isinstance(new, ManyToManyField):
        return
    if old.null and not new.null:
        yield "the former release may store null; refuse it a release later"
    if old.get_internal_type() != new.get_internal_type():
        yield "another type rewrites the table; add a column beside it"
        return
    if new.max_length and new.max_length < (old.max_length or new.max_length + 1):
        yield "the former release may store longer values"
    if new.unique and not old.unique:
        yield "the former release may store a value twice"
    elif new.db_index and not (old.db_index or old.unique) and label in LARGE:
        yield "an index keeps writers waiting; build it concurrently"
