"""What to do about a model that ended, by its exit code and the end of its log. Pure.

Logs are read for this only at the check before admission, whose examples may be shown: which cure
is told of a whole set would be one more thing that a model can say about its examples.
"""

import re

LOG_CURE = "Its log may say why."
PORTABLE_CURE = "Build it for x86-64 in general, not for the processor that you have."
CURES = (
    (
        r"Read-only file system|EROFS|Permission denied|PermissionError|EACCES",
        "It runs as user 65534 on a read-only disk, whatever its image says: make its files "
        "readable for everybody (RUN chmod -R a+rX /path, not below /root), and write only to "
        "/tmp.",
    ),
    (
        r"name resolution|Name or service not known|Network is unreachable|getaddrinfo|"
        r"Could not resolve|ENETUNREACH|EAI_AGAIN|Failed to establish a new connection|"
        r"LocalEntryNotFoundError|OfflineModeIsEnabled",
        "It has no network: put all that it loads into the image, such as weights and tokenizers, "
        "and set HF_HUB_OFFLINE=1.",
    ),
    (
        r"No space left on device|ENOSPC",
        "Only /tmp may be written to, 256 MiB: put what it unpacks or caches into the image.",
    ),
    (
        r"KeyError: 'getpwuid|getpwuid\(\): uid not found|no entry for user|I have no name",
        "It runs as user 65534, which has no entry in /etc/passwd: set USER and HOME=/tmp in the "
        "image, or do not ask for the user's name.",
    ),
    (
        r"ModuleNotFoundError|ImportError|cannot open shared object file|Cannot find module",
        "A library is missing in the image: install all that it needs while it is built.",
    ),
    (
        r"CUDA|NVIDIA|cuda",
        "It asks for a GPU: load it on the processor (map_location='cpu'), or ask for a GPU when "
        "you submit it where the site has one.",
    ),
)
BY_CODE = {
    126: "The file that CMD or ENTRYPOINT names must be executable for user 65534 (chmod a+rx).",
    127: "The file that CMD or ENTRYPOINT names must be in the image, for its processor.",
    132: PORTABLE_CURE,
}
"""132: SIGILL."""


def cure_of_code(code: int) -> str:
    """Return advice on what to change, or where to look, after an exit code."""
    return BY_CODE.get(code, LOG_CURE)


def cure_of_log(log: str) -> str:
    """Return advice for the last line of a log with a known error; "" without such a line."""
    for line in reversed(log.splitlines()):
        for pattern, cure in CURES:
            if re.search(pattern, line):
                return cure
    return ""
