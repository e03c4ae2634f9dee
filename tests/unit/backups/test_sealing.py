"""Sealed files: only the passphrase opens them, whole, under their own name."""

from dataclasses import replace

import pytest

from dynabench.operations.backups import sealing
from dynabench.operations.backups.manifest import Manifest, encode_manifest, read_manifest
from dynabench.operations.backups.sealing import TAG_BYTES, WrongSeal, is_sealed, seal, unseal

HEAD = len(sealing.MAGIC) + 2 * sealing.SALT_BYTES
CHUNK = 8


@pytest.fixture(autouse=True)
def _small_and_fast(monkeypatch):
    monkeypatch.setattr(sealing, "CHUNK_BYTES", CHUNK)
    monkeypatch.setattr(sealing, "SCRYPT_COST", 2)


def sealed(data: bytes, name: str = "a", passphrase: str = "right") -> bytes:
    blocks = [data[:3], data[3:]]
    return b"".join(seal(blocks, passphrase=passphrase, salt=b"s" * 16, name=name))


def unsealed(data: bytes, name: str = "a", passphrase: str = "right") -> bytes:
    return b"".join(unseal([data[:5], data[5:]], passphrase=passphrase, name=name))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK])
def test_what_is_sealed_comes_back(size):
    data = bytes(range(size))
    assert is_sealed(sealed(data))
    assert unsealed(sealed(data)) == data
    assert sealed(data) != sealed(data)


TWO = HEAD + 2 * (CHUNK + TAG_BYTES)
CHANGES = {
    "a bit": lambda s: s[:-1] + bytes([s[-1] ^ 1]),
    "its end": lambda s: s[:-1],
    "its last chunk": lambda s: s[: TWO - CHUNK - TAG_BYTES],
    "all chunks": lambda s: s[:HEAD],
    "its head": lambda s: s[: HEAD - 1],
    "more": lambda s: s + b"x",
    "a chunk twice": lambda s: s[: HEAD + CHUNK + TAG_BYTES] + s[HEAD:],
    "the order": lambda s: s[:HEAD] + s[HEAD + CHUNK + TAG_BYTES :] + s[HEAD:][: CHUNK + TAG_BYTES],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_no_change_passes(change):
    whole = sealed(b"0123456789abcdef")
    assert len(whole) == TWO
    with pytest.raises(WrongSeal):
        unsealed(change(whole))


def test_another_passphrase_or_name_opens_nothing():
    with pytest.raises(WrongSeal, match="passphrase"):
        unsealed(sealed(b"x"), passphrase="wrong")
    with pytest.raises(WrongSeal):
        unsealed(sealed(b"x"), name="b")


def test_a_manifest_comes_back_and_another_format_does_not():
    made = Manifest("https://s.example", "2026", "sqlite", {"tasks": ["0001"]}, "00")
    made.files["database"] = (3, "digest")
    assert read_manifest(encode_manifest(made)) == made
    assert made.size == 3
    for name in ("models//etc/passwd", "models/../key"):
        with pytest.raises(ValueError, match="unsafe path"):
            read_manifest(encode_manifest(replace(made, files={name: (3, "digest")})))
    made.format = 2
    with pytest.raises(ValueError, match="format"):
        read_manifest(encode_manifest(made))
