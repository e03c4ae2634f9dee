"""Forms for uploading a file of contexts and matching its columns, and the preview."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tasks.config.components import Component, list_names, map_by_name
from tasks.contexts.archives import MAX_ARCHIVE_BYTES
from tasks.contexts.columns import (
    EXTRA_COLUMNS,
    Fields,
    Matching,
    list_column_names,
    list_required_fields,
)
from tasks.contexts.files import Summary, build_histogram
from tasks.contexts.uploads import MAX_BYTES
from tasks.models import Round

COLUMN_PREFIX = "column-"
MAX_PREVIEW_ROWS = 20  # rows of a preview
MAX_ROWS = 20_000
ENDINGS = ".jsonl,.ndjson,.csv,.tsv,.xlsx,.xls,.ods,.txt,.gz,.zip"


class UploadForm(forms.Form):
    """A form for a file of contexts."""

    file = forms.FileField(
        label=_("File"),
        help_text=_(
            "JSONL, CSV, TSV, a spreadsheet (first sheet), plain text, or a .zip of files with a "
            "table. Use UTF-8. At most 20 MB, or 200 MB for a .zip file."
        ),
        widget=forms.ClearableFileInput(attrs={"accept": ENDINGS}),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        is_archive = file.name.lower().endswith(".zip")
        # An archive holds pictures and recordings, so it may be larger than a table.
        if file.size > (MAX_ARCHIVE_BYTES if is_archive else MAX_BYTES):
            limit = {"most": "200 MB" if is_archive else "20 MB"}
            raise ValidationError(gettext("The file is larger than %(most)s. Split it.") % limit)
        return file


class HubForm(forms.Form):
    """A form for importing contexts from a dataset of the Hugging Face Hub."""

    dataset = forms.CharField(
        label=_("Dataset"),
        max_length=400,
        help_text=_(
            "The dataset's name, such as stanfordnlp/snli, or the URL of one of its pages."
        ),
    )
    config = forms.CharField(label=_("Configuration"), max_length=200, required=False)
    split = forms.CharField(label=_("Split"), max_length=200, required=False)
    revision = forms.CharField(
        label=_("Revision"),
        max_length=200,
        required=False,
        help_text=_("A commit, branch or tag. Leave empty for the latest."),
    )
    rows = forms.IntegerField(
        label=_("Number of rows to import, starting with the first"),
        min_value=1,
        max_value=MAX_ROWS,
        initial=1000,
    )


class MatchForm(forms.Form):
    """A form in which owners choose the column of a file for each field."""

    def __init__(self, *args: Any, columns: Sequence[str], config: Fields, **options: Any) -> None:
        super().__init__(*args, **options)
        choices = [("", _("No column")), *((column, column) for column in columns)]
        required_fields = list_required_fields(config)
        for field in list_column_names(config):
            self.fields[COLUMN_PREFIX + field] = forms.ChoiceField(
                label=field, choices=choices, required=field in required_fields
            )

    def clean(self) -> None:
        for field, column in self.cleaned_data.items():
            other_columns = []
            for name, other_column in self.cleaned_data.items():
                if name != field:
                    other_columns.append(other_column)
            # Each column fills one field. Two of a kind are nearly always a slip of the hand.
            if column and column in other_columns:
                self.add_error(
                    field, gettext("This column is already used for another field. Choose another.")
                )
                return


def build_initial_values(matching: Matching) -> dict[str, str]:
    """Return the initial values of a MatchForm."""
    return {COLUMN_PREFIX + field: column for column, field in matching.items()}


def read_matching(data: Mapping[str, str], config: Fields) -> Matching | None:
    """Return the matching that a MatchForm sent; None if it had no columns to match."""
    sent_fields = []
    for field in list_column_names(config):
        if COLUMN_PREFIX + field in data:
            sent_fields.append(field)
    # None, and not an empty mapping: then the names in the file's first line count.
    if not sent_fields:
        return None
    return {
        data[COLUMN_PREFIX + field]: field for field in sent_fields if data[COLUMN_PREFIX + field]
    }


def build_preview_context(
    round: Round, summary: Summary, fields: Fields | None = None
) -> dict[str, Any]:
    """Return the values for the preview template, with the first rows as cells in field order.

    fields: by default the fields of the round's contexts.
    """
    components = (fields or round.task.config).context
    names = list(list_names(components))
    names += EXTRA_COLUMNS
    components_by_name = map_by_name(components)
    rows = []
    for row in summary.rows[:MAX_PREVIEW_ROWS]:
        cells = [
            _format_cell(row.values.get(name, ""), components_by_name.get(name)) for name in names
        ]
        rows.append((row.line, cells))
    return {
        "summary": summary,
        "names": names,
        "rows": rows,
        "histogram": build_histogram(summary.lengths),
        "is_sensitive": round.task.is_sensitive,
    }


def _format_cell(value: Any, component: Component | None) -> str:
    """Return the display text of a value. Texts are unchanged.

    A file is shown by its description. Without a component, other values are shown as JSON.
    """
    if isinstance(value, dict) and "digest" in value:
        return str(value.get("alt") or value.get("mime") or gettext("a file"))
    # Texts are shown as they are, also where the task has a label for them.
    if component is not None and not isinstance(value, str):
        return component.kind.display(component, value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
