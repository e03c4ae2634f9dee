"""Errors that become responses: the site refuses a request, or cannot serve it at present.

Services raise them. `core.web.refusals` and `core.web.api` turn them into responses.
"""


class Refused(Exception):
    """Raised if a rule forbids the request; the message says what to do instead.

    code: one word for programs. status: of the HTTP response. field: the form field to correct, or
    "". wait: the seconds after which the same request may succeed; 0 if waiting does not help.
    """

    code = "refused"
    status = 409
    field = ""
    wait = 0

    def __init__(self, message: str, *, code: str = "", status: int = 0, field: str = "") -> None:
        super().__init__(message)
        self.code = code or self.code
        self.status = status or self.status
        self.field = field or self.field


class Invalid(Refused):
    """Raised for a field value that a rule forbids."""

    code = "invalid"
    status = 422


class Unavailable(Exception):
    """Raised if the server lacks a resource now; the request may succeed in `wait` seconds.

    status: 503; 507 if the disk is full (RFC 4918, 11.5). code: the unavailable part, in one word
    for programs. detail: information for the operator, only for logs and the doctor.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 503,
        wait: int = 30,
        code: str = "unavailable",
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.wait, self.code, self.detail = status, wait, code, detail
