"""Ways to damage a file. Each takes its bytes and a source of chance, and gives other bytes: the same for one seed."""

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import numpy as np

Mutation = Callable[[bytes, Random], bytes]

BOMB_BYTES = 800_000_000
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
# What may stand where a number stood: too large, too small, no number, or one only to some eyes.
STRANGE = [
    *("nan", "NaN", "inf", "-inf", "Infinity", "-1", "-0", "0", "1", "2", "1e308", "1e309", "-1e308", "1e-320", "1e39"),
    *("1" + "0" * 20, "9" * 400, "18446744073709551615", "9223372036854775808", "-9223372036854775809", "4294967296"),
    *("2147483648", "600000", "1000000000000", "65536", "32768", "1.5", "007", "1_000", "0x10", "1e5", "+1", "--1"),
    *(
        "1,5",
        "1.2.3",
        "1e",
        ".",
        "-",
        "",
        " ",
        "None",
        "null",
        "true",
        "NA",
        "?",
        "\uff11\uff12",
        "1O",
        "\u00bd",
        "a",
        "1 2",
        "'1'",
    ),
]
INSERTED = [
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\x00" * 64,
    b"\xff" * 64,
    b"\r",
    b"\n",
    b"\x1a",
]
INSERTED += [
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b":",
    b"#",
    b"%",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    "\u2028".encode(),
    b"\xc3",
    b"../",
]
SIZES = [
    0,
    1,
    2,
    7,
    255,
    256,
    65535,
    65536,
    10**6,
    2**31 - 1,
    2**31,
    2**32 - 1,
    10**12,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


# --- any file ---------------------------------------------------------------------------------------------------------


def flip_bits(data: bytes, dice: Random) -> bytes:
    out = bytearray(data or b"\x00")
    for _ in range(dice.choice([1, 1, 1, 2, 8, 64])):
        out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    return bytes(out)


def change_bytes(data: bytes, dice: Random) -> bytes:
    out = bytearray(data or b"\x00")
    for _ in range(dice.choice([1, 1, 1, 2, 8])):
        out[dice.randrange(len(out))] = dice.randrange(256)
    return bytes(out)


def truncate(data: bytes, dice: Random) -> bytes:
    return data[: dice.choice([dice.randrange(len(data) + 1), max(0, len(data) - dice.randrange(1, 20))])]


def extend(data: bytes, dice: Random) -> bytes:
    return data + dice.choice([b"\x00", b"\n", b"\xff" * 40, dice.randbytes(dice.randrange(1, 200)), data])


def duplicate_chunk(data: bytes, dice: Random) -> bytes:
    start, end = _chunk(data, dice)
    return data[:end] + data[start:end] * dice.choice([1, 1, 2, 20]) + data[end:]


def delete_chunk(data: bytes, dice: Random) -> bytes:
    start, end = _chunk(data, dice)
    return data[:start] + data[end:]


def swap_chunks(data: bytes, dice: Random) -> bytes:
    a, b, c, d = sorted(dice.randrange(len(data) + 1) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def insert(data: bytes, dice: Random) -> bytes:
    at = dice.choice([0, len(data), dice.randrange(len(data) + 1), dice.randrange(len(data) + 1)])
    return data[:at] + dice.choice(INSERTED) + data[at:]


def overwrite(data: bytes, dice: Random) -> bytes:
    """A block of zeros or ones, as a bad sector leaves it."""
    start, end = _chunk(data, dice)
    return data[:start] + dice.choice([b"\x00", b"\xff"]) * (end - start) + data[end:]


def empty(data: bytes, dice: Random) -> bytes:
    return b""


def change_size(data: bytes, dice: Random) -> bytes:
    """Another number where a binary header may have a length."""
    width = dice.choice([2, 4, 8])
    at = dice.randrange(max(1, min(len(data), dice.choice([16, 128, len(data) + 1])) - width))
    number = dice.choice(SIZES) % 256**width
    return data[:at] + number.to_bytes(width, dice.choice(["little", "big"])) + data[at + width :]


def _chunk(data: bytes, dice: Random) -> tuple[int, int]:
    start = dice.randrange(len(data) + 1)
    return start, min(len(data), start + dice.choice([1, 2, 4, 16, 64, dice.randrange(len(data) + 1)]))


# --- text -------------------------------------------------------------------------------------------------------------


def change_number(data: bytes, dice: Random) -> bytes:
    return _at_a_number(data, dice, lambda old: dice.choice(STRANGE).encode())


def change_number_in_place(data: bytes, dice: Random) -> bytes:
    """As long as the old one, as fields of fixed width need it."""
    return _at_a_number(data, dice, lambda old: dice.choice(STRANGE).encode()[: len(old)].ljust(len(old)))


def change_digit(data: bytes, dice: Random) -> bytes:
    places = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return data
    at = dice.choice(places)
    return data[:at] + dice.choice([b"0", b"5", b"9", b"O", b"l", b"_", b".", b",", b" ", b"-", b"e"]) + data[at + 1 :]


def swap_lines(data: bytes, dice: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = dice.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def delete_line(data: bytes, dice: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = dice.randrange(len(lines)) if lines else 0
    return b"".join([*lines[:at], *lines[at + 1 :]])


def repeat_line(data: bytes, dice: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = dice.randrange(len(lines)) if lines else 0
    return b"".join([*lines[:at], *lines[at : at + 1] * 2, *lines[at + 1 :]])


def change_cells(data: bytes, dice: Random) -> bytes:
    """In one line, a cell lost, added, emptied, or two of them swapped."""
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    mark = next((m for m in (b"\t", b",", b" ") if m in lines[at]), b",")
    cells = lines[at].split(mark)
    one, other = dice.randrange(len(cells)), dice.randrange(len(cells))
    what = dice.randrange(5)
    if what == 0:
        del cells[one]
    elif what == 1:
        cells.insert(one, dice.choice([b"", b"1", b"a", cells[other]]))
    elif what == 2:
        cells[one] = b""
    elif what == 3:
        cells = cells[: one + 1]
    else:
        cells[one], cells[other] = cells[other], cells[one]
    lines[at] = mark.join(cells)
    return b"\n".join(lines)


def change_marks(data: bytes, dice: Random) -> bytes:
    """Another mark between cells, or other line ends, everywhere."""
    pairs = [(b",", b";"), (b",", b"\t"), (b"\t", b","), (b"\t", b" "), (b".", b","), (b"\n", b"\r\n"), (b"\n", b"\r")]
    old, new = dice.choice([*pairs, (b":", b";"), (b" ", b"\t"), (b'"', b"'"), (b"\n", b"\n\n")])
    return data.replace(old, new)


def other_encoding(data: bytes, dice: Random) -> bytes:
    return data.decode("latin-1").encode(dice.choice(["utf-16", "utf-8-sig", "utf-32", "cp037", "utf-16-le"]))


def _at_a_number(data: bytes, dice: Random, new: Callable[[bytes], bytes]) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    match = dice.choice(found)
    return data[: match.start()] + new(match[0]) + data[match.end() :]


# --- JSON -------------------------------------------------------------------------------------------------------------


def change_json(data: bytes, dice: Random) -> bytes:
    """Another value of any kind at one place of the tree, or the place removed."""
    try:
        tree = json.loads(data)
    except ValueError:
        return data
    places = list(_places(tree))
    if not places:
        return data
    holder, key = dice.choice(places)
    if dice.random() < 0.2:
        del holder[key]
    else:
        wild = [
            None,
            True,
            -1,
            0,
            0.5,
            10**6,
            600_000,
            10**20,
            1e308,
            float("nan"),
            float("inf"),
            "",
            "x",
            "../x",
            [],
            {},
        ]
        holder[key] = dice.choice([*wild, [[]], {"x": 1}, ["x"], str(holder[key]), [holder[key]], [holder[key]] * 2])
    return json.dumps(tree).encode()


def deep_json(data: bytes, dice: Random) -> bytes:
    """Nested so deep that a reader that calls itself runs out of stack; alone or as the value of a key."""
    depth = dice.choice([2000, 100_000])
    deep = dice.choice([b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth])
    return dice.choice([deep, data.rstrip()[:-1] + b', "deep": ' + deep + b"}"])


def huge_json_number(data: bytes, dice: Random) -> bytes:
    whole = [b"9" * 300, b"9" * 400, b"9" * 5000]  # that float64 can hold, that it cannot, that int() refuses
    number = dice.choice([*whole, b"1e999", b"-1e999", b"0." + b"1" * 5000, b"NaN", b"-Infinity"])
    return _at_a_number(data, dice, lambda old: number)


def repeat_json_key(data: bytes, dice: Random) -> bytes:
    at = data.rfind(b"}")
    keys = re.findall(rb'"(\w+)":', data)
    return data if at < 0 or not keys else data[:at] + b', "' + dice.choice(keys) + b'": 0' + data[at:]


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


# --- .npy and .npz ----------------------------------------------------------------------------------------------------

DTYPES = ["<f8", "<f4", ">f4", "<f2", "<i8", "|i1", "|u1", "|b1", "<c8", "|O", "<U4", "|S4", "<M8[s]", "<m8[s]", "|V4"]
STRUCTURED = [[("a", "<f4"), ("b", "<f4")], [("a", "<f4", (2,))], [("", "<f4")]]


def forge_npy_header(data: bytes, dice: Random) -> bytes:
    """Another shape, type, order or version in the header of an array."""
    try:
        shape, order, dtype = np.lib.format.read_array_header_1_0(io.BytesIO(data[8:]))
    except (ValueError, EOFError):
        return data
    body = data[10 + struct.unpack("<H", data[8:10])[0] :]
    wild = [(10**12,), (10**20,), (-1,), (2**31, 2**31), (10**6, 10**6), (0,), (), (1,) * 40, (True,), (2**63,), (3.0,)]
    wild += (
        [shape[::-1], (*shape, 1), (*shape, 0), (1, *shape), shape[:1] * 2, (shape[0] * 2, *shape[1:])] if shape else []
    )
    wild += [(shape[0] - 1, *shape[1:]), (10**12, *shape[1:])] if shape else []
    descr: Any = dtype.str
    what = dice.randrange(6)
    if what <= 1:
        shape = dice.choice(wild)
    elif what == 2:
        descr = dice.choice([*DTYPES, *STRUCTURED, "nonsense", 5, None])
    elif what == 3:
        order = not order
    text = repr({"descr": descr, "fortran_order": order, "shape": shape})
    if what == 4:
        text = dice.choice(
            [text[:-1], "[" * 2000, "{}", text.replace("descr", "kind"), "1", text + "x", "__import__('os')"]
        )
    version = dice.choice([(1, 0), (2, 0), (3, 0), (9, 9), (0, 0)]) if what == 5 else (1, 0)
    head = (text + "\n").encode()
    length = struct.pack(
        "<H" if version < (2, 0) else "<I", dice.choice([len(head), 65535]) if what == 5 else len(head)
    )
    return b"\x93NUMPY" + bytes(version) + length + head + body


def forge_member_header(data: bytes, dice: Random) -> bytes:
    return _rezip(data, dice, lambda name, held: (name, forge_npy_header(held, dice)))


def damage_member(data: bytes, dice: Random) -> bytes:
    """Damage inside a member whose checksum is right."""
    return _rezip(
        data, dice, lambda name, held: (name, dice.choice([flip_bits, truncate, extend, overwrite])(held, dice))
    )


def rename_member(data: bytes, dice: Random) -> bytes:
    names = [
        "X.npy",
        "y.npy",
        "z.npy",
        "group.npy",
        "X",
        "",
        "../X.npy",
        "/X.npy",
        "X.npy\x00",
        "X_train.npy",
        "labels.npy",
    ]
    return _rezip(data, dice, lambda name, held: (dice.choice([*names, name.lower(), name.upper()]), held))


def repeat_member(data: bytes, dice: Random) -> bytes:
    return _rezip(data, dice, lambda name, held: (name, flip_bits(held, dice)), keep=True)


def bomb(data: bytes, dice: Random) -> bytes:
    """A member of a gigabyte and more in a file of less than two megabytes."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (12, 1, {BOMB_BYTES // 48}), }}\n".encode()
    packed, crc, size = _zeros(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
    name = dice.choice(_names(data) or ["X.npy"])
    return _rezip(data, dice, lambda old, held: (old, held), instead={name: (packed, crc, size)})


def lie_about_size(data: bytes, dice: Random) -> bytes:
    """Another size, checksum, method or flag of encryption in the headers of a zip file."""
    places = [(m.start(), 46) for m in re.finditer(b"PK\x01\x02", data)] + [
        (m.start(), 30) for m in re.finditer(b"PK\x03\x04", data)
    ]
    if not places:
        return data
    out, what = bytearray(data), dice.randrange(5)
    for at, head in places if dice.random() < 0.5 else [dice.choice(places)]:
        shift = 2 if head == 46 else 0
        field = {0: (22, 4), 1: (18, 4), 2: (6, 2), 3: (8, 2), 4: (14, 4)}[what]
        value = {2: 1, 3: dice.choice([1, 9, 12, 14, 93, 99])}.get(what, dice.choice(SIZES) % 2**32)
        out[at + field[0] + shift : at + sum(field) + shift] = value.to_bytes(field[1], "little")
    return bytes(out)


def _names(data: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return file.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []


def _rezip(
    data: bytes,
    dice: Random,
    change: Callable[[str, bytes], tuple[str, bytes]],
    *,
    keep: bool = False,
    instead: dict[str, tuple[bytes, int, int]] | None = None,
) -> bytes:
    """The archive with one member changed; `keep`: beside the old one; `instead`: compressed already."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(info.filename, file.read(info)) for info in file.infolist()]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError):
        return data
    chosen, instead = dice.randrange(len(members)) if members else 0, instead or {}
    packing = dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    pairs: list[tuple[str, bytes]] = []
    for i, (name, held) in enumerate(members):
        pairs += [(name, held)] if i != chosen or keep else []
        pairs += [change(name, held)] if i == chosen else []
    return _zip(pairs, packing, instead)


def _zip(pairs: list[tuple[str, bytes]], packing: int, instead: dict[str, tuple[bytes, int, int]]) -> bytes:
    """Written by hand, because zipfile neither repeats a name in silence nor takes what is compressed already."""
    body, index = b"", b""
    for name, held in pairs:
        deflate = zlib.compressobj(wbits=-15)
        packed = held if packing == zipfile.ZIP_STORED else deflate.compress(held) + deflate.flush()
        packed, crc, size = instead.get(name, (packed, zlib.crc32(held), len(held)))
        method = zipfile.ZIP_DEFLATED if name in instead else packing
        text = name.encode()
        fields = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, len(packed), size, len(text), 0)
        index += b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + text
        body += b"PK\x03\x04" + fields + text + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(pairs), len(pairs), len(index), len(body), 0)
    return body + index + b"PK\x05\x06" + end


@cache
def _zeros(head: bytes) -> tuple[bytes, int, int]:
    """`head` and BOMB_BYTES zeros, deflated without ever holding them: (packed, checksum, size)."""
    zeros, deflate = bytes(1 << 20), zlib.compressobj(9, wbits=-15)
    begin = deflate.compress(head) + deflate.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the next block does not look back, so it can be repeated as it is.
    block = deflate.compress(zeros) + deflate.flush(zlib.Z_FULL_FLUSH)
    times, rest = divmod(BOMB_BYTES, len(zeros))
    end = deflate.compress(zeros[:rest]) + deflate.flush()
    crc = zlib.crc32(head)
    for _ in range(times):
        crc = zlib.crc32(zeros, crc)
    return begin + block * times + end, zlib.crc32(zeros[:rest], crc), len(head) + BOMB_BYTES


# --- .safetensors -----------------------------------------------------------------------------------------------------


def forge_tensor_header(data: bytes, dice: Random) -> bytes:
    """Damage in the JSON header, with its length put right."""
    if len(data) < 8:
        return data
    length = struct.unpack("<Q", data[:8])[0]
    how = dice.choice(
        [change_json, change_json, change_json, deep_json, huge_json_number, repeat_json_key, change_number]
    )
    head = how(data[8 : 8 + length], dice)
    return struct.pack("<Q", len(head)) + head + data[8 + length :]


BYTES: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    change_bytes,
    change_bytes,
    truncate,
    truncate,
    extend,
    duplicate_chunk,
    delete_chunk,
    swap_chunks,
    insert,
    insert,
    overwrite,
    empty,
)
BINARY = (*BYTES, change_size, change_size, change_size)
TEXT = (
    *BYTES,
    *(change_number, change_number, change_number, change_number_in_place, change_digit, change_digit, swap_lines),
    *(delete_line, repeat_line, change_cells, change_cells, change_cells, change_marks, other_encoding),
)
JSON = (*TEXT, *(change_json,) * 8, deep_json, huge_json_number, huge_json_number, repeat_json_key)
NPY = (*BINARY, *(forge_npy_header,) * 10)
ZIP = (*BINARY, *(forge_member_header,) * 6, damage_member, damage_member, rename_member, repeat_member, bomb)
ZIP = (*ZIP, *(lie_about_size,) * 4)
TENSORS = (*BINARY, *(forge_tensor_header,) * 10)


def mutate(data: bytes, ways: tuple[Mutation, ...], dice: Random) -> tuple[bytes, list[str]]:
    """Other bytes, and by what they became so: mostly one way, sometimes two or three."""
    out, names = data, []
    for _ in range(dice.choice([1, 1, 1, 1, 1, 1, 1, 2, 2, 3])):
        way = dice.choice(ways)
        names.append(way.__name__)
        with suppress(Exception):  # a way that cannot make sense of what an earlier one left changes nothing
            out = way(out, dice)
    if out == data:  # a way that found nothing to change
        out = flip_bits(data, dice)
        names.append(flip_bits.__name__)
    return out, names
