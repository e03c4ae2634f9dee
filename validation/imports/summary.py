"""The summary of an import: what it stored and what it left out. Pure."""

from dataclasses import dataclass, field

Place = int | str
"""The number of a line or record, in a folder or archive after the name of its file."""
MAX_PLACES = 5
"""So many places are named of what is not kept."""
VOTED_AGAIN = "earlier votes of people who voted on the same example again; their last one counts"
NO_FIELD = "which is no field of the task, so no page and no export shows it"
LATER_VOTES = "votes on examples that were imported before; import them into another round"


@dataclass
class SkippedRows:
    """The number of rows of one kind, and the locations of the first few."""

    count: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, place: Place, count: int) -> None:
        """Count further rows and record their location."""
        self.count += count
        if len(self.places) < MAX_PLACES:
            self.places.append(str(place))

    def said(self, what: str) -> str:
        """Return the count with what it counts, and the first locations."""
        more = ", …" if self.count > len(self.places) else ""
        return f"{self.count:,} {what} ({', '.join(self.places)}{more})"


@dataclass
class Summary:
    """The numbers of new, known and invalid lines in a file; `rounds`: new examples by round.

    left: what of the valid lines is not stored, by name. noted: what is stored but worth reporting.
    renamed: the fields of columns whose names no field can have.
    """

    new: int = 0
    known: int = 0
    bad: int = 0
    rounds: dict[str, int] = field(default_factory=dict)
    left: dict[str, SkippedRows] = field(default_factory=dict)
    noted: dict[str, SkippedRows] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def leave(self, what: str, place: Place, count: int = 1) -> None:
        """Count something that is not stored."""
        self.left.setdefault(what, SkippedRows()).add(place, count)

    def note(self, what: str, place: Place, count: int = 1) -> None:
        """Count something that is stored but worth reporting."""
        self.noted.setdefault(what, SkippedRows()).add(place, count)

    def notes(self) -> list[str]:
        """Return a sentence for each renamed column, and each kind of rows noted or left out."""
        return [
            *(
                f"The column {column!r} is the field {name}."
                for column, name in self.renamed.items()
            ),
            *(f"Note: {count.said(what)}" for what, count in self.noted.items()),
            *(f"Left out: {count.said(what)}" for what, count in self.left.items()),
        ]
