"""What the server cannot do at present, though nothing is wrong with what was asked."""


class Unavailable(Exception):
    """Nobody's mistake: the same again may go well in `wait` seconds. The message says what lacks.

    status: 503; 507 where there is no room on the disk (RFC 4918, 11.5).
    """

    def __init__(self, message: str, *, status: int = 503, wait: int = 30) -> None:
        super().__init__(message)
        self.status, self.wait = status, wait
