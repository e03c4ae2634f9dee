"""The summary of an import: what it stored and what it left out. Pure."""

from dataclasses import dataclass, field

LineNumber = int | str
"""The number of a line or record; in a folder or archive, with the file's name before it."""
MAX_NAMED_LINES = 5
"""The most locations that are named for each kind of rows."""
REPEATED_VOTES = (
    "earlier votes of people who voted on the same example again; their last one counts"
)
NO_FIELD_NOTE = "which isn't a field of the task, so pages and exports don't show it"
LATER_VOTES = "votes on examples that were imported before; import them into another round"


@dataclass
class SkippedRows:
    """The number of rows with the same problem or note, and the locations of the first few."""

    count: int = 0
    positions: list[str] = field(default_factory=list)

    def add(self, line_number: LineNumber, count: int) -> None:
        """Count further rows and record their location."""
        self.count += count
        if len(self.positions) < MAX_NAMED_LINES:
            self.positions.append(str(line_number))

    def describe(self, reason: str) -> str:
        """Return a text with the count, the reason and the first locations."""
        ending = ", …" if self.count > len(self.positions) else ""
        return f"{self.count:,} {reason} ({', '.join(self.positions)}{ending})"


@dataclass
class Summary:
    """The numbers of new, known and invalid lines in a file; `new_by_round`: new examples by round.

    left_out: parts of valid lines that are not stored, by reason. notes_by_reason: what is stored
    but worth reporting. renamed_columns: fields by column, for columns whose names no field can
    have.
    """

    new_count: int = 0
    known_count: int = 0
    bad_count: int = 0
    new_by_round: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, SkippedRows] = field(default_factory=dict)
    notes_by_reason: dict[str, SkippedRows] = field(default_factory=dict)
    renamed_columns: dict[str, str] = field(default_factory=dict)

    def note_left_out(self, reason: str, line_number: LineNumber, count: int = 1) -> None:
        """Count something that is not stored."""
        self.left_out.setdefault(reason, SkippedRows()).add(line_number, count)

    def note_stored(self, reason: str, line_number: LineNumber, count: int = 1) -> None:
        """Count something that is stored but worth reporting."""
        self.notes_by_reason.setdefault(reason, SkippedRows()).add(line_number, count)

    def list_notes(self) -> list[str]:
        """Return a sentence for each renamed column, and each kind of rows noted or left out."""
        return [
            *(
                f"The column {column!r} is the field {name}."
                for column, name in self.renamed_columns.items()
            ),
            *(f"Note: {count.describe(reason)}" for reason, count in self.notes_by_reason.items()),
            *(f"Left out: {count.describe(reason)}" for reason, count in self.left_out.items()),
        ]
