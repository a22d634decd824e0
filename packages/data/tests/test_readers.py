"""Data sets that read files, from files that the tests write."""

import gzip
import pickle
import random
import struct
import tracemalloc

import numpy as np
import pytest
from PIL import Image

import taeda_data as data
from taeda_data import readers
from taeda_registry.slots import tensor as tt

SEED = 5


def numbers(*shape):
    return np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)


def write_idx(path, array, code, squeeze=False):
    content = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content += array.astype(array.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(content) if squeeze else content)


@pytest.mark.parametrize(
    ("code", "dtype"), [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")]
)
@pytest.mark.parametrize("squeeze", [False, True])
def test_idx(tmp_path, code, dtype, squeeze):
    array = numbers(3, 4, 5).astype(dtype)
    write_idx(tmp_path / "a", array, code, squeeze)
    found = readers.read_idx(tmp_path / "a")
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        b"PK\x03\x04",
        bytes([0, 0, 8, 1, 0, 0, 0, 9, 1]),
        bytes([0, 0, 8, 255]),
        bytes([0, 0, 7, 0]),
        bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0]),
        bytes([0, 0, 8, 200]) + bytes([0, 0, 0, 1]) * 200 + b"1",
    ],
)
def test_what_is_no_idx(tmp_path, content):
    tmp_path.joinpath("a").write_bytes(content)
    with pytest.raises(ValueError, match="read_idx: "):
        readers.read_idx(tmp_path / "a")


def test_idx_files_are_unpacked_as_far_as_their_header_says(tmp_path):
    content = bytes([0, 0, 8, 1, 0, 0, 0, 4]) + bytes(1 << 25)
    tmp_path.joinpath("a").write_bytes(gzip.compress(content))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="has more bytes, its header says 12"):
            readers.read_idx(tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_sizes_of_idx_that_overflow(tmp_path):
    tmp_path.joinpath("a").write_bytes(bytes([0, 0, 14, 4]) + b"\xff" * 16 + b"\0" * 8)
    with pytest.raises(ValueError, match="its header says"):
        readers.read_idx(tmp_path / "a")


@pytest.mark.parametrize("squeeze", [False, True])
@pytest.mark.parametrize("folder", ["", "MNIST/raw"])
def test_mnist(tmp_path, squeeze, folder):
    images, labels = numbers(6, 28, 28), np.arange(6, dtype=np.uint8)
    where = tmp_path / folder
    where.mkdir(parents=True, exist_ok=True)
    end = ".gz" if squeeze else ""
    write_idx(where / f"t10k-images-idx3-ubyte{end}", images, 8, squeeze)
    write_idx(where / f"t10k-labels-idx1-ubyte{end}", labels, 8, squeeze)
    digits = readers.MNIST(tmp_path, train=False, target_transform=lambda label: label + 10)
    image, label = digits[4]
    assert (len(digits), label, image.dtype, tuple(image.shape)) == (6, 14, tt.uint8, (1, 28, 28))
    np.testing.assert_array_equal(image[0].numpy(), images[4])
    assert digits.class_to_idx["3 - three"] == 3 and "6 images" in repr(digits)
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        readers.MNIST(tmp_path)


def test_mnist_with_other_counts(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", numbers(3, 28, 28), 8)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, np.uint8), 8)
    with pytest.raises(ValueError, match="MNIST: found 3 images and 2 labels"):
        readers.MNIST(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.full(3, 10, np.uint8), 8)
    with pytest.raises(ValueError, match="found labels from 10 to 10"):
        readers.MNIST(tmp_path)


def test_cifar_10_in_both_versions(tmp_path):
    images, labels = numbers(5, 4, 3072), np.random.default_rng(SEED).integers(0, 10, (5, 4))
    for i in range(5):
        content = {"data": images[i], "labels": labels[i].tolist(), "batch_label": "x"}
        tmp_path.joinpath(f"data_batch_{i + 1}").write_bytes(pickle.dumps(content, protocol=2))
    bin_folder = tmp_path / "bin" / "cifar-10-batches-bin"
    bin_folder.mkdir(parents=True)
    for i in range(5):
        rows = np.concatenate([labels[i][:, None].astype(np.uint8), images[i]], 1)
        rows.tofile(bin_folder / f"data_batch_{i + 1}.bin")
    for root in (tmp_path, tmp_path / "bin"):
        found = readers.CIFAR10(root)
        assert len(found) == 20 and found.classes[1] == "automobile"
        np.testing.assert_array_equal(found.data.numpy(), images.reshape(20, 3, 32, 32))
        assert found.targets.tolist() == labels.reshape(-1).tolist()


def test_cifar_100_in_both_versions(tmp_path):
    images, labels = numbers(4, 3072), [3, 99, 0, 50]
    names = [f"class {i}" for i in range(100)]
    tmp_path.joinpath("test").write_bytes(
        pickle.dumps({b"data": images, b"fine_labels": labels, b"coarse_labels": [0] * 4}, protocol=2)
    )
    tmp_path.joinpath("meta").write_bytes(pickle.dumps({"fine_label_names": names}))
    found = readers.CIFAR100(tmp_path, train=False)
    assert (found.targets.tolist(), found.classes[99]) == (labels, "class 99")
    folder = tmp_path / "other" / "cifar-100-binary"
    folder.mkdir(parents=True)
    rows = np.concatenate([np.zeros((4, 1), np.uint8), np.array(labels, np.uint8)[:, None], images], 1)
    rows.tofile(folder / "test.bin")
    folder.joinpath("fine_label_names.txt").write_text("\n".join(n.replace(" ", "_") for n in names))
    found = readers.CIFAR100(tmp_path / "other", train=False)
    assert found.targets.tolist() == labels
    np.testing.assert_array_equal(found.data.numpy().reshape(4, -1), images)


class Harmful:
    def __reduce__(self):
        return (print, ("loaded",))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Harmful()),
        pickle.dumps([1]),
        pickle.dumps({"data": np.zeros((2, 5), np.uint8), "labels": [1, 2]}),
        pickle.dumps({"labels": [1]}),
        b"\x80",
        b"",
    ],
    ids=["code", "list", "shape", "nothing", "short", "empty"],
)
def test_pickles_that_are_no_cifar(tmp_path, content, capsys):
    tmp_path.joinpath("test_batch").write_bytes(content)
    with pytest.raises(ValueError, match="is no file of CIFAR"):
        readers.CIFAR10(tmp_path, train=False)
    assert capsys.readouterr().out == ""


def test_cifar_binary_of_another_length(tmp_path):
    tmp_path.joinpath("test_batch.bin").write_bytes(b"\0" * 3074)
    with pytest.raises(ValueError, match="expected a multiple of 3073"):
        readers.CIFAR10(tmp_path, train=False)


def test_image_folder(tmp_path):
    pictures = {"dog/b.png": 1, "cat/deep/a.png": 2, "cat/c.JPG": 3, "cat/notes.txt": None}
    for name, value in pictures.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if value is None:
            path.write_text("no image")
        else:
            Image.fromarray(np.full((4, 6), value, np.uint8)).save(path, "PNG")
    found = readers.ImageFolder(tmp_path, transform=lambda image: image.to(tt.int64))
    assert found.classes == ["cat", "dog"] and found.class_to_idx == {"cat": 0, "dog": 1}
    assert [path[len(str(tmp_path)) + 1 :] for path, _ in found.samples] == [
        "cat/c.JPG",
        "cat/deep/a.png",
        "dog/b.png",
    ]
    assert found.targets == [0, 0, 1]
    image, label = found[2]
    assert tuple(image.shape) == (3, 4, 6) and image.unique().tolist() == [1] and label == 1
    only = readers.ImageFolder(tmp_path, is_valid_file=lambda path: path.endswith("b.png"), allow_empty=True)
    assert len(only) == 1
    tmp_path.joinpath("empty").mkdir()
    with pytest.raises(FileNotFoundError, match="found no image of empty"):
        readers.ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="found no folder of a class"):
        readers.ImageFolder(tmp_path / "dog")


def test_files_that_are_no_images(tmp_path):
    tmp_path.joinpath("a.png").write_text("no image")
    with pytest.raises(ValueError, match="cannot be read as an image"):
        readers.read_image(tmp_path / "a.png")
    tmp_path.joinpath("c.ppm").write_bytes(b"P6 2 2x 255\n" + bytes(12))
    screen = struct.pack("<HHBBB", 60000, 60000, 0x80, 0, 0) + bytes(6)
    image = b"," + struct.pack("<HHHHB", 0, 0, 60000, 60000, 0)
    tmp_path.joinpath("d.gif").write_bytes(b"GIF89a" + screen + image + b"\x02\x02\x4c\x01\x00;")
    for name in ("c.ppm", "d.gif"):
        with pytest.raises(ValueError, match=rf"{name}' cannot be read as an image"):
            readers.read_image(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        readers.read_image(tmp_path / "b.png")


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('rooms,"price, net",area\n3,100.5,70\n\n2,80,\n', encoding="utf-8-sig")
    houses = readers.CSVDataset(path, target="price, net")
    assert len(houses) == 2 and houses.names == ["rooms", "price, net", "area"]
    sample, price = houses[0]
    assert (sample.tolist(), price.item(), sample.dtype) == ([3.0, 70.0], 100.5, tt.float32)
    assert houses[1][0].isnan().tolist() == [False, True]
    plain = readers.CSVDataset(path, columns=["area", 0], dtype=tt.float64)
    assert plain[0].tolist() == [70.0, 3.0] and plain[0].dtype == tt.float64
    numbered = tmp_path / "b.csv"
    numbered.write_text("1;2;3\n4;5;6\n")
    classes = readers.CSVDataset(numbered, target=-1, header=False, delimiter=";", target_dtype=tt.int64)
    assert classes[1][0].tolist() == [4.0, 5.0] and classes[1][1].item() == 6


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        ("a,b\n1,2\n3\n", {}, "line 3 of .* has 1 fields, expected 2"),
        ("a,b\n1,x\n", {}, "line 2 of .* has 'x' in column 'b', expected a number"),
        ("a,b\n1,2\n", {"target": "c"}, "there is no column 'c', found a, b"),
        ("a,b\n1,2\n", {"columns": [2]}, "there is no column 2"),
        ("", {}, "is empty"),
    ],
)
def test_wrong_csv(tmp_path, text, options, error):
    tmp_path.joinpath("a.csv").write_text(text)
    with pytest.raises(ValueError, match=error):
        readers.CSVDataset(tmp_path / "a.csv", **options)


def test_arrays(tmp_path):
    x, y = numbers(5, 2, 3), np.arange(5.0)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    mapped = readers.ArrayDataset(tmp_path / "x.npy", tmp_path / "y.npy")
    assert len(mapped) == 5 and isinstance(mapped.arrays[0], np.memmap)
    image, value = mapped[3]
    assert image.tolist() == x[3].tolist() and value.item() == 3.0
    image.zero_()  # its own memory
    assert mapped[3][0].tolist() == x[3].tolist()
    assert readers.ArrayDataset(tmp_path / "both.npz", keys=["y"])[2].item() == 2.0
    assert readers.ArrayDataset(tmp_path / "both.npz")[1][0].tolist() == x[1].tolist()
    batches = list(data.DataLoader(mapped, batch_size=2, num_workers=1))
    assert [len(values) for _, values in batches] == [2, 2, 1]
    np.save(tmp_path / "z.npy", np.arange(4))
    np.save(tmp_path / "o.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    for wrong, text in [
        ((), "at least one file"),
        (("x.npy", "z.npy"), "must share their first dimension"),
        (("o.npy",), "o.npy' cannot be mapped: .*Python objects"),
        (("x.npy", "both.npz"), "several with an .npz"),
    ]:
        with pytest.raises(ValueError, match=text):
            readers.ArrayDataset(*(tmp_path / name for name in wrong))
    with pytest.raises(ValueError, match="has no array q; it has x, y"):
        readers.ArrayDataset(tmp_path / "both.npz", keys=["q"])


def idx_file(path):
    header = bytes([0, 0, 8, 2]) + (5).to_bytes(4, "big") + (6).to_bytes(4, "big")
    path.write_bytes(gzip.compress(header + bytes(range(30)), mtime=0))


def csv_file(path):
    path.write_text("a,b\n1,2\n3,4\n")


def image_file(path):
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(path)


DAMAGED = {
    "a.gz": (idx_file, readers.read_idx),
    "a.idx": (lambda path: write_idx(path, np.ones((2, 3), np.float32), 13), readers.read_idx),
    "a.npy": (lambda path: np.save(path, numbers(4, 3)), lambda path: list(readers.ArrayDataset(path))),
    "a.npz": (lambda path: np.savez(path, x=numbers(4)), lambda path: list(readers.ArrayDataset(path))),
    "a.csv": (csv_file, readers.CSVDataset),
    "a.png": (image_file, readers.read_image),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_named(tmp_path, name):
    """Bytes that are changed, cut off and put in: the file is read, or a ValueError says which it was."""
    path = tmp_path / name
    write, read = DAMAGED[name]
    write(path)
    good, chosen = path.read_bytes(), random.Random(7)
    for _ in range(300):
        at = chosen.randrange(len(good))
        byte = bytes([chosen.randrange(256)])
        path.write_bytes(
            chosen.choice([good[:at] + byte + good[at + 1 :], good[:at], good[:at] + byte + good[at:]])
        )
        try:
            read(path)
        except ValueError as error:
            assert name in str(error) or "first dimension" in str(error)
        except MemoryError:  # as many numbers as the file says
            pass


@pytest.mark.parametrize("end", ["", "\n"])
def test_lines(tmp_path, end):
    path = tmp_path / "a.txt"
    path.write_bytes(("one\nzwölf\r\n\nlast" + end).encode())
    lines = readers.TextLines(path)
    assert len(lines) == 4 and [lines[i] for i in range(4)] == ["one", "zwölf", "", "last"]
    assert lines[-1] == "last" and readers.TextLines(path, transform=len)[1] == 5
    with pytest.raises(IndexError, match="index 4 is out of range for 4 lines"):
        lines[4]
    with pytest.raises(UnicodeDecodeError) as refused:
        readers.TextLines(path, encoding="ascii")[-3]
    assert refused.value.__notes__ == [f"in line 2 of {str(path)!r}"]
    path.write_bytes(b"")
    assert len(readers.TextLines(path)) == 0


def test_digits():
    digits = readers.Digits()
    image, label = digits[0]
    assert len(digits) == 1797 and tuple(image.shape) == (1, 8, 8) and label == 0
    assert digits.data.max().item() == 16 and sorted(set(digits.targets.tolist())) == list(range(10))


def test_samples_are_those_of_any_number_of_workers(tmp_path):
    """Random transforms of a reader's images come from the loader's stream for each sample."""
    from taeda_data import transforms

    digits = readers.Digits(transforms.Compose([transforms.RandomCrop(6), transforms.RandomHorizontalFlip()]))
    part = data.Subset(digits, range(24))
    streams = []
    for workers in (0, 2):
        tt.manual_seed(SEED)
        streams.append(
            [images.tolist() for images, _ in data.DataLoader(part, 8, shuffle=True, num_workers=workers)]
        )
    assert streams[0] == streams[1]
