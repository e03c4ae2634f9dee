"""What an import did, and what it did not keep. Pure."""

from dataclasses import dataclass, field

Place = int | str
"""The number of a line or record, in a folder or archive after the name of its file."""
MOST_PLACES = 5
"""So many places are named of what is not kept."""
VOTED_AGAIN = "earlier votes of people who voted on the same example again; their last one counts"
NO_FIELD = "which is no field of the task, so no page and no export shows it"
LATER_VOTES = "votes on examples that were imported before; import them into another round"


@dataclass
class Left:
    """How much of one kind is not kept, and where the first of it stand."""

    count: int = 0
    places: list[str] = field(default_factory=list)


@dataclass
class Summary:
    """How many of a file's lines were new, known and bad; `rounds`: new examples by round.

    left: what of the good lines is not kept, by its name. renamed: the fields of columns that no
    field can be called by.
    """

    new: int = 0
    known: int = 0
    bad: int = 0
    rounds: dict[str, int] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def leave(self, what: str, place: Place, count: int = 1) -> None:
        """Count what is not kept."""
        left = self.left.setdefault(what, Left())
        left.count += count
        if len(left.places) < MOST_PLACES:
            left.places.append(str(place))

    def notes(self) -> list[str]:
        """A sentence for each column under another name, and each kind of what is not kept."""
        return [
            *(
                f"The column {column!r} is the field {name}."
                for column, name in self.renamed.items()
            ),
            *self._kept_out(),
        ]

    def _kept_out(self) -> list[str]:
        return [
            f"Left out: {left.count:,} {what} ({', '.join(left.places)}"
            f"{', …' if left.count > len(left.places) else ''})"
            for what, left in self.left.items()
        ]
