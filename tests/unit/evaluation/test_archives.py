"""Archives: each rule with an archive that breaks it, and what is unpacked of those that do not."""

import io
import lzma
import os
import random
import stat
import struct
import tarfile
import zipfile
import zlib
from gzip import compress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation.isolation.uploads import archives
from evaluation.isolation.uploads.archives import (
    ArchiveLimits,
    ArchiveRefused,
    Member,
    check_archive,
    clean_member_name,
    unpack_archive,
)
from tests.support.archives import tar_of

FILES = {
    "model/config.json": b"{}",
    "model/weights/a.safetensors": random.Random(0).randbytes(2_000_000),
}
PACKERS = {"tar": lambda data: data, "tar.gz": compress, "tar.xz": lzma.compress}


def zip_of(files, mode=0, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = compression
            archive.writestr(info, data)
    return stream.getvalue()


@pytest.fixture
def stored(tmp_path):
    def store(data):
        path = tmp_path / "archive"
        path.write_bytes(data)
        return path

    return store


@pytest.fixture
def check(stored):
    return lambda data, **limits: check_archive(stored(data), ArchiveLimits(**limits))


def pack(files, kind):
    return zip_of(files) if kind == "zip" else PACKERS[kind](tar_of(files))


@pytest.mark.parametrize("kind", ["zip", *PACKERS])
def test_what_is_packed_comes_out(kind, stored, tmp_path):
    path, into = stored(pack(FILES, kind)), tmp_path / "out"
    assert check_archive(path) == [Member(name, len(data), False) for name, data in FILES.items()]
    unpack_archive(path, into)
    assert {name: (into / name).read_bytes() for name in FILES} == FILES


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_modes_are_ours(kind, stored, tmp_path):
    old = os.umask(0o077)
    try:
        data = tar_of(FILES, mode=0o6777) if kind == "tar" else zip_of(FILES, stat.S_IFREG | 0o6777)
        unpack_archive(stored(data), tmp_path / "out")
    finally:
        os.umask(old)
    for path in (tmp_path / "out").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)


def test_folders_and_the_archive_itself_may_be_members(stored, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in ("./", "./empty/", "./a/", "./a/"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            tar.addfile(info)
        tar.addfile(tarfile.TarInfo("./a/file"))
    path = stored(stream.getvalue())
    assert [member.name for member in check_archive(path)] == ["empty", "a", "a", "a/file"]
    unpack_archive(path, tmp_path / "out")
    assert (tmp_path / "out" / "empty").is_dir()


NAMES = [
    ("../a", "leads out"),
    ("a/../../b", "leads out"),
    ("a/..", "leads out"),
    ("/etc/passwd", "absolute"),
    ("C:\\x", "absolute"),
    ("c:x", "absolute"),
    ("a\\..\\b", "backslash"),
    ("a\nb", "cannot be printed"),
    ("a\x1b[31m", "cannot be printed"),
    ("a\u202egnp.exe", "cannot be printed"),
    ("con", "Windows"),
    ("a/NUL.txt", "Windows"),
    ("a.", "Windows"),
    ("a /b", "Windows"),
    ("a?", "Windows"),
    ("x" * 256, "too long"),
    ("/".join(["x" * 99] * 11), "too long"),
]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize(("name", "rule"), NAMES)
def test_names_that_are_refused(name, rule, kind, stored, tmp_path):
    path = stored(pack({"good": b"x", name: b"x"}, kind))
    with pytest.raises(ArchiveRefused, match=rule) as error:
        unpack_archive(path, tmp_path / "out")
    assert str(error.value).startswith(ascii(name)[1:-1][:100])
    assert not (tmp_path / "out").exists()
    assert str(error.value).isprintable()


def test_a_name_with_nul_is_refused_in_both_formats(check):
    """`zipfile` and `tarfile` both cut it off there, and so would see another name."""
    data = zip_of({"a0b": b"x"}).replace(b"a0b", b"a\0b")
    with pytest.raises(ArchiveRefused, match="NUL"):
        check(data)
    header = bytearray(tar_of({"a/b": b"x"}))
    header[2] = 0
    header[3:5] = b"xx"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    with pytest.raises(ArchiveRefused, match="NUL"):
        check(bytes(header))


def test_a_name_that_is_no_utf_8(check):
    with pytest.raises(ArchiveRefused, match="not UTF-8"):
        check(tar_of({"a\udcff": b"x"}, format=tarfile.GNU_FORMAT))


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    "names",
    [
        ("a", "a"),
        ("a", "A"),
        ("é", "e\u0301"),
        ("a", "./a"),
        ("b/a", "b//a"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b", "A/B"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_is_there_once(names, kind, check):
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")
    else:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name in names:
                tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(ArchiveRefused, match="there twice"):
        check(stream.getvalue())


def test_a_file_without_a_name(check):
    data = zip_of({"a": b"x"}).replace(b"a", b"\0")
    with pytest.raises(ArchiveRefused, match="NUL"):
        check(data)
    with pytest.raises(ArchiveRefused, match="name is empty"):
        check(tar_of({".": b"x"}))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (b"Z", "a special file"),
    ],
)
def test_a_tar_archive_holds_plain_files_and_folders(kind, words, check):
    with pytest.raises(ArchiveRefused, match=f"^a: it is {words}"):
        check(tar_of({"a": b""}, type=kind, linkname="/etc/passwd"))


def test_a_sparse_file_is_refused(check):
    pax = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1000000", "GNU.sparse.numblocks": "1"}
    with pytest.raises(ArchiveRefused, match="special file"):
        check(tar_of({"a": b"x"}, pax_headers=pax, format=tarfile.PAX_FORMAT))


@pytest.mark.parametrize(
    ("mode", "words"),
    [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "a device"), (stat.S_IFSOCK, "a device, pipe")],
)
def test_a_zip_archive_holds_plain_files_and_folders(mode, words, check):
    with pytest.raises(ArchiveRefused, match=f"^a: it is {words}"):
        check(zip_of({"a": b"/etc/passwd"}, mode | 0o777))


def test_an_encrypted_member_is_refused(check):
    data = bytearray(zip_of({"a": b"x"}))
    for at in (6, data.index(b"PK\1\2") + 8):
        data[at] |= 1
    with pytest.raises(ArchiveRefused, match=r"^a: .*encrypted"):
        check(bytes(data))


def test_a_member_outside_the_archive(check):
    data = bytearray(zip_of({"a": b"x"}))
    at = data.index(b"PK\1\2") + 42
    data[at : at + 4] = struct.pack("<L", 2**31)
    with pytest.raises(ArchiveRefused, match=r"^a: .*outside"):
        check(bytes(data))


def test_an_unusual_compression_is_refused(check):
    with pytest.raises(ArchiveRefused, match="ordinary zip"):
        check(zip_of({"a": b"x"}, compression=zipfile.ZIP_LZMA))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_members_and_bytes_are_counted(kind, check):
    data = pack({str(n): b"12345" for n in range(10)}, kind)
    assert len(check(data, members=10, bytes=50)) == 10
    with pytest.raises(ArchiveRefused, match=r"^9: .* 9 members"):
        check(data, members=9)
    with pytest.raises(ArchiveRefused, match=r"^9: .* 49 bytes"):
        check(data, bytes=49)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz"])
def test_a_bomb_is_refused_early(kind, check):
    data = pack({"small": b"x", "zeros": bytes(20 * 2**20)}, kind)
    with pytest.raises(ArchiveRefused, match="unfolds to"):
        check(data)
    assert check(pack({"zeros": bytes(900_000)}, kind))  # too small to harm


def test_a_bomb_of_members_that_share_their_bytes(check):
    """As Fifield's: each unfolds less than a hundred times, together they are too much."""
    once = zip_of({"a": bytes(2_000_000) + os.urandom(30_000)})
    start = once.index(b"PK\1\2")
    entry = once[start : once.index(b"PK\5\6")]
    many = b"".join(entry[:46] + b"%c" % (97 + n) + entry[47:] for n in range(10))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 10, 10, len(many), start, 0)
    with pytest.raises(ArchiveRefused, match="unfolds"):
        check(once[:start] + many + end, ratio=70)


def test_a_zip_that_lies_about_a_size_is_caught_while_it_is_unpacked(stored, tmp_path):
    data = bytearray(zip_of({"a": b"0123456789"}, compression=zipfile.ZIP_STORED))
    for at in (data.index(b"PK\3\4") + 22, data.index(b"PK\1\2") + 24):
        data[at : at + 4] = struct.pack("<L", 5)
    with pytest.raises(ArchiveRefused, match=r"^a: damaged"):
        unpack_archive(stored(bytes(data)), tmp_path / "out")


def test_a_tar_archive_that_ends_too_early(stored, tmp_path):
    data = tar_of({"a": b"x" * 2000})
    for kept in (1500, 600, 300):
        with pytest.raises(ArchiveRefused, match=r"No archive|damaged"):
            check_archive(stored(data[:kept]))
    with pytest.raises(ArchiveRefused, match="2000 it claims"):
        archives._write_member(tmp_path / "x", Member("a", 2000, False), iter([b"x"]))


def test_what_follows_a_member_must_be_a_member(check):
    data = tar_of({"a": b"x"})
    with pytest.raises(ArchiveRefused, match=r"^a: .*damaged"):
        check(data[:1024] + b"garbage!" * 64)


@pytest.mark.parametrize("packed", [compress, lzma.compress])
def test_damaged_compression(packed, check):
    data = packed(tar_of({"a": os.urandom(100_000)}))
    with pytest.raises(ArchiveRefused, match="No archive"):
        check(data[: len(data) // 2])
    with pytest.raises(ArchiveRefused, match="No archive"):
        check(data[:50_000] + b"?" * 100 + data[50_100:])


def test_an_xz_file_that_needs_much_memory_is_refused(check):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 * 2**20}]
    with pytest.raises(ArchiveRefused, match=r"[Mm]emory"):
        check(lzma.compress(tar_of(FILES), filters=filters))


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh9", "bzip2"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!", "rar"),
    ],
)
def test_formats_that_are_not_read_are_named(start, name, check):
    with pytest.raises(ArchiveRefused, match=rf"^{name} .*\.zip"):
        check(start + bytes(600))


@pytest.mark.parametrize("data", [b"", b"hello", bytes(10_240), b"PK\3\4 not really", b"x" * 5000])
def test_files_that_are_no_archive(data, check):
    with pytest.raises(ArchiveRefused, match=r"No archive|no file"):
        check(data)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_of_nothing(kind, check):
    with pytest.raises(ArchiveRefused):
        check(pack({}, kind))


def test_large_tables_and_headers_are_not_read(check):
    names = {f"{n}" + "x" * 250: b"" for n in range(20_000)}
    with pytest.raises(ArchiveRefused, match="too many"):
        check(zip_of(names))
    with pytest.raises(ArchiveRefused, match="header"):
        check(tar_of({"a": b"", "x" * 100_000: b""}, format=tarfile.GNU_FORMAT))
    chain = tar_of({"x" * 2000: b""}, format=tarfile.GNU_FORMAT)[:2560] * 1500
    with pytest.raises(ArchiveRefused, match="No archive"):  # one header leads to the next
        check(chain)


def test_headers_about_all_members(check):
    def with_global(pax):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", pax_headers=pax) as tar:
            tar.addfile(tarfile.TarInfo("a"))
        return stream.getvalue()

    assert check(with_global({"comment": "a commit, as git writes it"}))
    with pytest.raises(ArchiveRefused):
        check(with_global({"path": "b"}))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_a_size_that_leads_backwards(kind, check):
    header = bytearray(tar_of({"a": b"", "b": b""}))
    header[124:136] = b"\xff" * 8 + struct.pack(">l", -4096)
    header[156:157] = kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    with pytest.raises(ArchiveRefused):
        check(bytes(header))


def test_an_archive_is_read_in_one_direction():
    """Whatever a Python's `tarfile` makes of a header that leads backwards."""
    stream = archives.TarStream(io.BytesIO(bytes(1024)), None)
    stream.read(512)
    with pytest.raises(ArchiveRefused):
        stream.seek(511)


def test_nothing_is_written_through_a_link_that_is_there(stored, tmp_path):
    into = tmp_path / "out"
    into.mkdir()
    (into / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        unpack_archive(stored(tar_of({"a": b"x"})), into)
    assert not (tmp_path / "elsewhere").exists()


@given(st.text(max_size=30))
def test_a_name_stays_in_the_folder(name):
    try:
        kept = clean_member_name(name)
    except ArchiveRefused:
        return
    path = os.path.normpath(os.path.join("/folder", kept))
    assert path == "/folder" or path.startswith("/folder/")
    assert clean_member_name(kept) == kept


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,2}(/[a-z]{1,2}){0,2}", fullmatch=True), st.binary(), min_size=1
    ),
    st.sampled_from(["zip", *PACKERS]),
)
def test_whatever_is_unpacked_is_what_was_packed(tmp_path_factory, files, kind):
    folder = tmp_path_factory.mktemp("archive")
    (folder / "archive").write_bytes(pack(files, kind))
    assume(not any(other.startswith(f"{name}/") for name in files for other in files))
    unpack_archive(folder / "archive", folder / "out")
    found = {p for p in (folder / "out").rglob("*") if p.is_file()}
    assert {str(p.relative_to(folder / "out")): p.read_bytes() for p in found} == files


@given(st.binary(max_size=2000), st.sampled_from([b"", b"PK\3\4", b"\x1f\x8b\x08"]))
def test_no_bytes_break_the_reader(tmp_path_factory, data, start):
    path = tmp_path_factory.mktemp("archive") / "archive"
    path.write_bytes(start + data)
    with pytest.raises(ArchiveRefused):
        check_archive(path)


@given(st.integers(0, 2000), st.integers(0, 255), st.sampled_from(["zip", *PACKERS]))
def test_one_wrong_byte_breaks_nothing_but_the_archive(tmp_path_factory, at, byte, kind):
    folder = tmp_path_factory.mktemp("archive")
    data = bytearray(pack({"a/b": b"content", "c": zlib.compress(b"x")}, kind))
    data[at % len(data)] = byte
    (folder / "archive").write_bytes(data)
    try:
        unpack_archive(folder / "archive", folder / "out")
    except ArchiveRefused:
        return
    assert not {p.name for p in folder.iterdir()} - {"archive", "out"}
