"""Files encrypted with a passphrase: chunks under AES-GCM, with a key that scrypt derives. Pure.

A file is MAGIC, 16 bytes of salt for scrypt, 16 bytes of the file's own salt for HKDF, then chunks.
As in the format of the tool age, the nonce of a chunk contains its number and whether it is the
last one. So no chunk can be moved, left out or appended. The file's name goes into its key, so that
no file can be passed off as another.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"dynabench-sealed-1\n"
SALT_BYTES = 16
CHUNK_BYTES = 2**20
TAG_BYTES = 16
SCRYPT_COST = 2**16  # 64 MB and a fifth of a second for each guess


class WrongSeal(ValueError):
    """Raised if the passphrase is wrong or the file is damaged."""


def is_sealed(start: bytes) -> bool:
    """Return whether a file that begins with these bytes is encrypted."""
    return start.startswith(MAGIC)


def seal(blocks: Iterable[bytes], *, passphrase: str, salt: bytes, name: str) -> Iterator[bytes]:
    """Yield the encrypted file as blocks of bytes.

    salt: random bytes, the same for all files of a backup, because scrypt is slow. name: the file's
    name, which `unseal` needs, too.
    """
    # Another key for each file, for all of which scrypt is asked once.
    file_salt = os.urandom(SALT_BYTES)
    cipher = _build_cipher(passphrase, salt, file_salt, name)
    yield MAGIC + salt + file_salt
    pending_chunk = b""
    chunk_number = 0
    for chunk in _cut_into_pieces(blocks, CHUNK_BYTES):
        if chunk_number:
            yield cipher.encrypt(_build_nonce(chunk_number, is_last=False), pending_chunk, None)
        pending_chunk, chunk_number = chunk, chunk_number + 1
    # An empty file has one empty chunk, so that its end is sealed, too.
    yield cipher.encrypt(_build_nonce(max(chunk_number, 1), is_last=True), pending_chunk, None)


def unseal(blocks: Iterable[bytes], *, passphrase: str, name: str) -> Iterator[bytes]:
    """Yield the decrypted bytes in blocks of any size.

    Raises WrongSeal, possibly after yielding valid blocks.
    """
    pieces = _cut_into_pieces(
        blocks, len(MAGIC) + 2 * SALT_BYTES, later_size=CHUNK_BYTES + TAG_BYTES
    )
    header = next(pieces, b"")
    salt, file_salt = header[len(MAGIC) : -SALT_BYTES], header[-SALT_BYTES:]
    if not is_sealed(header) or len(salt) != SALT_BYTES:
        raise WrongSeal(f"{name} is not encrypted correctly.")
    cipher = _build_cipher(passphrase, salt, file_salt, name)
    pending_chunk, chunk_number = next(pieces, b""), 1
    try:
        for chunk in pieces:
            yield cipher.decrypt(_build_nonce(chunk_number, is_last=False), pending_chunk, None)
            pending_chunk, chunk_number = chunk, chunk_number + 1
        yield cipher.decrypt(_build_nonce(chunk_number, is_last=True), pending_chunk, None)
    except InvalidTag:
        raise WrongSeal(f"{name}: the passphrase is wrong, or the file is damaged.") from None


def _cut_into_pieces(blocks: Iterable[bytes], size: int, *, later_size: int = 0) -> Iterator[bytes]:
    """Yield the same bytes in pieces of `size`; the last piece may be shorter.

    later_size: the size of all pieces after the first one; if 0, they have `size`, too.
    """
    buffer = bytearray()
    for block in blocks:
        buffer += block
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
            size = later_size or size
    if buffer:
        yield bytes(buffer)


def _build_nonce(chunk_number: int, *, is_last: bool) -> bytes:
    return chunk_number.to_bytes(11, "big") + bytes([is_last])


def _build_cipher(passphrase: str, salt: bytes, file_salt: bytes, name: str) -> AESGCM:
    key = HKDF(algorithm=SHA256(), length=32, salt=file_salt, info=name.encode())
    return AESGCM(key.derive(_stretch_passphrase(passphrase, salt)))


# The files of a backup share a salt; a guess takes a fifth of a second.
@lru_cache(maxsize=4)
def _stretch_passphrase(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(passphrase.encode())
