"""Files that nobody should have written, loaded under limits of memory and time: `checkpoint_fuzz.py COMMAND ...`.

Run as a process of its own, because what is looked for is that it dies or grows. ``mutated SEED COUNT LOG`` changes
good files; the file under way stands in LOG. ``hostile FIRST`` loads those of `HOSTILE` from that number on. Both print
what came of it as JSON.
"""

from __future__ import annotations

import io
import json
import resource
import signal
import struct
import sys
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from random import Random

import taeda_tensor_core as tc
from taeda_tensor_core.serialization import CheckpointError, load, save

# What the loader may use beside four times the file, and what the interpreter takes meanwhile.
SPARE = (64 + 48) << 20
SECONDS = 1.0


# --- good files, put together from opcodes ---


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module, what):
    return f"c{module}\n{what}\n".encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(key, kind, count, tail=b""):
    return (
        b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + number(count) + tail + b"tQ"
    )


def tensor(key, kind, count, shape, stride, offset=0, tail=b""):
    parts = storage(key, kind, count, tail) + number(offset) + numbers(shape) + numbers(stride) + b"\x89"
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + parts
        + name("collections", "OrderedDict")
        + b")RtR"
    )


def state(tail=b""):
    """A pickle with everything in it that data may have."""
    ordered = name("collections", "OrderedDict") + b")R"
    weight = tensor("0", "FloatStorage", 6, (2, 3), (3, 1), tail=tail) + b"q\x01"
    shared = tensor("0", "FloatStorage", 6, (2,), (2,), 1, tail)
    half = tensor("1", "BFloat16Storage", 4, (4,), (1,), tail=tail)
    parameter = name("torch._utils", "_rebuild_parameter") + half + b"\x88" + ordered + b"\x87R"
    wide = name("torch._utils", "_rebuild_tensor_v3") + b"(" + storage("2", "UntypedStorage", 4, tail)
    wide += b"K\0" + numbers((2,)) + numbers((1,)) + b"\x89" + ordered + name("torch", "uint16") + b"tR"
    plain = b"(K\x01G?\xe0\0\0\0\0\0\0N\x88" + b"\x8a\x09" + bytes(8) + b"\x01" + text("word") + b"l"
    others = b"(" + name("__builtin__", "set") + b"](K\x01K\x02e\x85R" + name("_codecs", "encode")
    others += text("ab") + text("latin1") + b"\x86R" + name("__builtin__", "complex") + b"G" + bytes(8) + b"G"
    others += (
        bytes(8) + b"\x86R" + name("torch", "Size") + numbers((2, 3)) + b"\x85R" + name("torch", "float32")
    )
    others += name("collections", "Counter") + b"}K\x05K\x02s\x85Rt"
    keys = b"}(K\x01K\x02\x86" + text("pair") + number(-7) + b"h\x01u"
    entries = [("weight", weight), ("shared", shared), ("p", parameter), ("wide", wide), ("plain", plain)]
    entries += [("others", others), ("keys", keys)]
    inside = b"".join(text(key) + value for key, value in entries)
    version = b"}" + text("_metadata") + b"}s"
    return b"\x80\x02" + ordered + b"q\0(" + inside + b"u" + version + b"b."


DATA = {"0": struct.pack("<6f", *range(6)), "1": bytes(8), "2": bytes(4)}


def archive(pickled, entries=DATA):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data.pkl", pickled)
        out.writestr("archive/byteorder", b"little")
        for key, content in entries.items():
            out.writestr(f"archive/data/{key}", content)
    return file.getvalue()


def legacy(pickled):
    magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
    facts = b"\x80\x02}" + text("little_endian") + b"\x88s."
    keys = b"\x80\x02](" + b"".join(map(text, DATA)) + b"e."
    counts = {"0": 6, "1": 4, "2": 4}
    data = b"".join(struct.pack("<q", counts[key]) + content for key, content in DATA.items())
    return magic + facts + pickled + keys + data


def saved(obj, **options):
    file = io.BytesIO()
    save(obj, file, **options)
    return file.getvalue()


def good_files():
    base = tc.arange(12.0).reshape(3, 4)
    nested = {
        "n": {"lr": 0.5, "b": [tc.ones(4), None, (1, "x")]},
        3: base.t(),
        "row": base[1],
        "flag": tc.ones(2) > 0,
    }
    return {
        "flat": saved({"a": tc.arange(6).reshape(2, 3), "b.c": tc.ones(2, dtype=tc.bfloat16)}),
        "nested": saved(nested),
        "zip": archive(state()),
        "written": saved(nested | {"ordered": OrderedDict(a=1), "c": Counter("aab")}, format="torch"),
        "legacy": legacy(state(b"N")),
    }


# --- mutations ---

WORDS = [
    0,
    1,
    2**7,
    2**8 - 1,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
CODES = b"NKMJ\x8a\x8bGX\x8c\x8dUTCB\x8e\x85\x86\x87tlhjc\x93Q\x80\x95(01aesud\x90qr\x94Rb\x81.2oi"


def mutate(data, random):
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        at, kind = random.randrange(len(data) or 1), random.randrange(8)
        stop = min(len(data), at + random.choice([1, 4, 16, 100]))
        if kind == 0:
            data[at:stop] = bytes(random.randrange(256) for _ in range(stop - at))
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            size = random.choice([1, 2, 4, 8])
            data[at : at + size] = (random.choice(WORDS) & (256**size - 1)).to_bytes(size, "little")
        elif kind == 3:
            del data[at:stop]
        elif kind == 4:
            data[at:at] = data[at:stop] * random.choice([1, 2, 50])
        elif kind == 5:
            data[at:at] = bytes(random.choice(CODES) for _ in range(random.choice([1, 3, 10])))
        elif kind == 6:
            place = random.randrange(len(data) or 1)
            data[at:stop] = data[place : place + stop - at]
        elif random.random() < 0.3:
            del data[at:]
        else:
            digits = str(random.choice(WORDS)).encode()
            data[at : at + len(digits)] = digits
    return bytes(data)


def mutated_file(kind, good, random):
    """A changed file; half of the time the change is inside, and what is around it is right."""
    if kind == "zip" and random.random() < 0.6:
        return archive(mutate(state(), random))
    if kind == "legacy" and random.random() < 0.6:
        return legacy(mutate(state(b"N"), random))
    if kind in ("flat", "nested") and random.random() < 0.6:
        size = int.from_bytes(good[:8], "little")
        header = mutate(good[8 : 8 + size], random)
        return len(header).to_bytes(8, "little") + header + good[8 + size :]
    return mutate(good, random)


# --- files made to hurt ---


def doubling(levels, first=b")"):
    """A tuple with 2**levels leaves, in a few bytes a level."""
    out = first + b"q\x09"
    for _ in range(levels):
        out += b"h\x09h\x09\x86q\x09"
    return out


def outside_in(levels):
    """Lists put into lists that already are inside others."""
    out = b"\x80\x02]r\0\0\0\x000"
    for k in range(1, levels):
        inner, outer = struct.pack("<I", k), struct.pack("<I", k - 1)
        out += b"]r" + inner + b"0j" + outer + b"j" + inner + b"a0"
    return out + b"j\0\0\0\0."


def key_of(value, tail=b"N"):
    return b"\x80\x02}" + value + tail + b"s."


def as_reference(value):
    return b"\x80\x02" + value + b"Q."


def header(content, body=b""):
    return len(content).to_bytes(8, "little") + content + body


def described(structure):
    return header(json.dumps({"__metadata__": {"taeda.structure": structure}}).encode())


def overlapping():
    """Many entries of the directory that stand for the same bytes."""
    whole = archive(b"\x80\x02N.", {"0": bytes(1 << 20)})
    end = whole.rindex(b"PK\5\6")
    count, length, begin = struct.unpack_from("<HLL", whole, end + 10)
    directory = whole[begin : begin + length]
    last = directory[directory.rindex(b"PK\1\2") :]
    more = b"".join(last[:-1] + bytes([i]) for i in range(65, 91))
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count + 26, count + 26, length + len(more), begin, 0)
    return whole[:begin] + directory + more + tail


def colliding(count):
    """A dict of tuples with one hash."""
    p1, p2, p5, mask = 11400714785074694791, 14029467366897019727, 2870177450012600261, 2**64 - 1
    inverse = pow(p2, -1, 2**64)

    def turned(value):
        return ((value << 31) | (value >> 33)) & mask

    pairs, first = [], 0
    while len(pairs) < count:
        first += 1
        begun = turned((p5 + first * p2) & mask) * p1 & mask
        second = (12345 - begun) * inverse & mask  # with it the sum before turning is the same for all
        if second < 2**61 - 1:
            pairs.append((first, second))
    assert len({hash(pair) for pair in pairs}) == 1
    keys = b"".join(
        b"J" + struct.pack("<i", a) + b"\x8a\x08" + struct.pack("<q", b) + b"\x86N" for a, b in pairs
    )
    return b"\x80\x02}(" + keys + b"u."


def flooding(count):
    """A dict of integers with one hash."""
    prime = 2**61 - 1
    return (
        b"\x80\x02}("
        + b"".join(b"\x8a\x0e" + (k * prime).to_bytes(14, "little") + b"N" for k in range(1, count))
        + b"u."
    )


def strided(shape, stride, offset=0):
    large = b"".join(b"\x8a\x09" + v.to_bytes(9, "little", signed=True) for v in shape)
    steps = b"".join(b"\x8a\x09" + v.to_bytes(9, "little", signed=True) for v in stride)
    start = b"\x8a\x09" + offset.to_bytes(9, "little", signed=True)
    parts = storage("0", "FloatStorage", 6) + start + b"(" + large + b"t(" + steps + b"t\x89)"
    return archive(b"\x80\x02" + name("torch._utils", "_rebuild_tensor_v2") + b"(" + parts + b"tR.")


def calling(module, what, args):
    return archive(b"\x80\x02" + args + b"q\x0a0" + name(module, what) + b"h\x0aR.")


HOSTILE = {
    "tuples two million deep as a key": lambda: archive(key_of(b")" + b"\x85" * 2_000_000)),
    "tuples 300,000 deep": lambda: archive(b"\x80\x02)" + b"\x85" * 300_000 + b"."),
    "lists 300,000 deep": lambda: archive(b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b"."),
    "lists nested from outside": lambda: archive(outside_in(600)),
    "doubling tuple as a key": lambda: archive(key_of(doubling(60))),
    "doubling tuple in a set": lambda: archive(b"\x80\x02\x8f(" + doubling(60) + b"\x90."),
    "doubling tuple in a called set": lambda: calling("__builtin__", "set", b"]" + doubling(60) + b"a\x85"),
    "doubling tuple in an OrderedDict": lambda: calling(
        "collections", "OrderedDict", b"](" + doubling(60) + b"Nta\x85"
    ),
    "doubling tuple as a reference": lambda: archive(as_reference(doubling(60))),
    "doubling tuple as a kind of storage": lambda: archive(
        as_reference(b"(" + text("storage") + doubling(60) + b"NNNt")
    ),
    "doubling tuple as a key of storage": lambda: archive(
        as_reference(b"(" + text("storage") + name("torch", "FloatStorage") + doubling(60) + text("cpu") + b"K\6t")
    ),
    "doubling tuple as a device": lambda: calling("torch", "device", doubling(60) + b"\x85"),
    "doubling tuple as a shape": lambda: calling("torch", "Size", doubling(60) + b"\x85"),
    "doubling tuple is called": lambda: archive(b"\x80\x02" + doubling(60) + b")R."),
    "doubling tuple as attributes": lambda: archive(b"\x80\x02N" + doubling(60) + b"b."),
    "doubling tuple makes an object": lambda: archive(b"\x80\x02" + doubling(60) + b")\x81."),
    "doubling tuple as a tensor": lambda: calling(
        "torch._utils", "_rebuild_tensor_v2", b"(" + doubling(60) + b"NNNNNt"
    ),
    "doubling tuple of a storage": lambda: calling(
        "torch._utils", "_rebuild_tensor_v2", b"(" + storage("0", "FloatStorage", 6) + b"K\0" + doubling(60) + b"NN)t"
    ),
    "a set of millions": lambda: archive(b"\x80\x02" + b"\x8f" * 4_000_000 + b"."),
    "millions of marks": lambda: archive(b"\x80\x02" + b"(" * 4_000_000 + b"."),
    "one text encoded again and again": lambda: archive(
        b"\x80\x02" + text("x" * 1_000_000) + b"q\0" + text("latin1") + b"q\1" + name("_codecs", "encode") + b"q\2"
        + b"h\2h\0h\1\x86R" * 100_000 + b"."
    ),
    "one list copied again and again": lambda: archive(
        b"\x80\x02](" + b"N" * 1_000_000 + b"eq\0" + name("__builtin__", "set") + b"q\1"
        + b"h\1h\0\x85R" * 100_000 + b"."
    ),
    "a memo with a far end": lambda: archive(b"\x80\x02Nr\xff\xff\xff\xff."),
    "a memo with many ends": lambda: archive(
        b"\x80\x02" + b"".join(b"Nr" + struct.pack("<I", 1_500_000 * k) for k in range(40)) + b"."
    ),
    "tuples with one hash": lambda: archive(colliding(30_000)),
    "integers with one hash": lambda: archive(flooding(100_000)),
    "a huge integer as a key": lambda: archive(key_of(b"\x8b" + struct.pack("<I", 1 << 20) + b"\1" * (1 << 20))),
    "a huge integer as a count": lambda: archive(
        as_reference(
            b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + text("cpu") + b"\x8b"
            + struct.pack("<I", 1 << 20) + b"\1" * (1 << 20) + b"t"
        )
    ),
    "a long name": lambda: archive(b"\x80\x02" + name("m" * 1_000_000, "n" * 1_000_000) + b"."),
    "overlapping entries": overlapping,
    "elements beyond counting": lambda: strided((2**40, 2**40), (0, 0)),
    "bytes beyond counting": lambda: strided((2**61,), (0,)),
    "a stride beyond the memory": lambda: strided((2, 1), (2**61, 1)),
    "strides that overflow to the beginning": lambda: strided((5,), (2**62,)),
    "an offset beyond the memory": lambda: strided((0,), (1,), 2**60),
    "a negative stride": lambda: strided((2,), (-1,), 3),
    "many empty lists in a header": lambda: header(b'{"__metadata__":{},"a":[' + b"[]," * 8_000_000 + b"[]]}"),
    "many empty dicts in a header": lambda: header(b'{"a":[' + b"{}," * 8_000_000 + b"{}]}"),
    "a header of brackets": lambda: header(b"[" * 1_000_000),
    "a deep structure": lambda: described('{"list":[' * 20_000 + '{"value":1}' + "]}" * 20_000),
    "a structure of 300 levels": lambda: described('{"list":[' * 300 + '{"value":1}' + "]}" * 300),
    "integers with one hash in a header": lambda: described(
        json.dumps({"dict": [[k * (2**61 - 1), {"value": 1}] for k in range(1, 50_000)]})
    ),
    "sizes beyond counting in a header": lambda: header(
        json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 0]}}).encode()
    ),
    "an empty tensor beyond counting": lambda: header(
        json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**40, 0], "data_offsets": [0, 0]}}).encode()
    ),
    "a view beyond counting in a header": lambda: header(
        json.dumps(
            {
                "__metadata__": {"taeda.structure": '{"view":["a",0,[1099511627776,1099511627776],[0,0]]}'},
                "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            }
        ).encode(),
        bytes(4),
    ),
    "a long name in a header": lambda: header(json.dumps({"n" * 1_000_000: 1}).encode()),
    "a size of thousands of digits": lambda: header(b'{"a":{"dtype":"F32","shape":[' + b"9" * 1_000_000 + b']}}'),
}  # fmt: skip


# --- loading under limits ---


def limit(size):
    """Memory for this file; time is told by a signal that ends the process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    most = pages * resource.getpagesize() + 4 * size + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, SECONDS + size / 1e6)


def result(data):
    """``loaded``, or the error's text; anything but `CheckpointError` goes through."""
    file = io.BytesIO(data)
    limit(len(data))
    try:
        load(file)
        return "loaded"
    except CheckpointError as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def main(command, *args):
    if command == "hostile":
        for case in list(HOSTILE)[int(args[0]) :]:
            print(json.dumps([case, result(HOSTILE[case]())[:2000]]), flush=True)
        return
    seed, count, log = args
    files = good_files()
    for kind, data in files.items():
        assert result(data) == "loaded", kind
    ends = Counter()
    with Path(log).open("w", encoding="utf-8") as out:
        for at in range(int(count)):
            random = Random(f"{seed} {at}")
            kind = random.choice(sorted(files))
            data = mutated_file(kind, files[kind], random)
            out.seek(0)
            out.truncate()
            out.write(f"file {at} of kind {kind}: {data.hex()}")
            out.flush()
            text = result(data)
            assert len(text) < 1000
            ends[f"{kind} {'loaded' if text == 'loaded' else 'refused'}"] += 1
    print(json.dumps(ends))


if __name__ == "__main__":
    main(*sys.argv[1:])
