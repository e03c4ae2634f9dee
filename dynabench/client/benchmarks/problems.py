"""The problems of a folder's files, each with its file, line and column."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FileProblem:
    """A problem in a file, and how to correct it. line, column: counted from 1; 0 for the whole."""

    file: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Return the problem as a line of text that begins with its place."""
        place = self.file
        if self.line:
            place += f" line {self.line}"
        if self.column:
            place += f", column {self.column}"
        return f"{place}: {self.message}"


class FolderError(ValueError):
    """Raised if a folder cannot be applied because of its files. `problems` has all of them."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        """Create an error whose text has a line for each problem."""
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))
