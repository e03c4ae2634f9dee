"""Give advice about a model that failed, by its exit code and the end of its log. Pure.

Logs are read for advice only at the check before admission, whose examples may be shown. For a
whole set, the choice of advice could reveal something about its examples.
"""

import re

LOG_ADVICE = "Its log may say why."
PORTABLE_ADVICE = "Build it for x86-64 in general, not for the processor that you have."
ADVICE_BY_PATTERN = (
    (
        r"Read-only file system|EROFS|Permission denied|PermissionError|EACCES",
        (
            "It runs as user 65534 on a read-only disk, whatever its image says. Make its files "
            "readable for everyone (RUN chmod -R a+rX /path, not below /root), and write only to "
            "/tmp."
        ),
    ),
    (
        r"name resolution|Name or service not known|Network is unreachable|getaddrinfo|"
        r"Could not resolve|ENETUNREACH|EAI_AGAIN|Failed to establish a new connection|"
        r"LocalEntryNotFoundError|OfflineModeIsEnabled",
        (
            "It has no network. Put everything it loads into the image, such as weights and "
            "tokenizers, and set HF_HUB_OFFLINE=1."
        ),
    ),
    (
        r"No space left on device|ENOSPC",
        ("It can write only to /tmp, 256 MiB. Put everything it unpacks or caches into the image."),
    ),
    (
        r"KeyError: 'getpwuid|getpwuid\(\): uid not found|no entry for user|I have no name",
        (
            "It runs as user 65534, which has no entry in /etc/passwd. Set USER and HOME=/tmp in "
            "the image, or do not ask for the user's name."
        ),
    ),
    (
        r"ModuleNotFoundError|ImportError|cannot open shared object file|Cannot find module",
        "A library is missing in the image. Install everything it needs when you build it.",
    ),
    (
        r"CUDA|NVIDIA|cuda",
        (
            "It asks for a GPU. Load it on the processor (map_location='cpu'), or ask for a GPU "
            "when you submit it, if the site has one."
        ),
    ),
)
ADVICE_BY_CODE = {
    126: "The file that CMD or ENTRYPOINT names must be executable for user 65534 (chmod a+rx).",
    127: "The file that CMD or ENTRYPOINT names must be in the image, for its processor.",
    132: PORTABLE_ADVICE,
}
"""Advice by exit code. 132 means SIGILL."""


def find_advice_by_code(code: int) -> str:
    """Return advice on what to change, or where to look, after an exit code."""
    return ADVICE_BY_CODE.get(code, LOG_ADVICE)


def find_advice_in_log(log: str) -> str:
    """Return advice for the last line of a log with a known error; "" without such a line."""
    for line in reversed(log.splitlines()):
        for pattern, advice in ADVICE_BY_PATTERN:
            if re.search(pattern, line):
                return advice
    return ""
