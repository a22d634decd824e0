"""`hub`: models from folders and repositories, weights by URL, from a server on this machine."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError, URLError

import pytest

import taeda

HUBCONF = """dependencies = ["sys"]
from beside import SHIFT
def model(width, bias=True):
    "A model."
    return width + SHIFT, bias
def _hidden(): pass
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder and the address under which it is served."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of what is fetched; no repository's modules are kept from another test."""
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "hub"


def repository(path, files):
    """An archive as GitHub packs repositories: in one folder named after a commit."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def cloned(served, home, monkeypatch):
    """owner/name on a server, with nobody to answer questions."""
    folder, address = served
    repository(
        folder / "main.zip",
        {
            "owner-name-12ab/": "",
            "owner-name-12ab/hubconf.py": HUBCONF,
            "owner-name-12ab/beside.py": "SHIFT = 1",
        },
    )
    monkeypatch.setattr(taeda.hub, "_git_archive_link", lambda owner, name, ref: f"{address}/{ref}.zip")
    return folder


def test_a_folder(tmp_path, home):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("SHIFT = 0")
    assert taeda.hub.load(tmp_path, "model", 3, source="local", bias=False) == (3, False)
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        taeda.hub.load(tmp_path, "other", source="local")
    (tmp_path / "hubconf.py").write_text('dependencies = ["no_such_package"]')
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        taeda.hub.load(tmp_path, "model", source="local")
    with pytest.raises(FileNotFoundError, match=r"hub\.load: there is no"):
        taeda.hub.load(tmp_path / "none", "model", source="local")
    with pytest.raises(ValueError, match="Unknown source: 'ftp'"):
        taeda.hub.load(tmp_path, "model", source="ftp")


def test_a_file_is_fetched_once(served, home, capsys):
    folder, address = served
    taeda.save({"weight": taeda.arange(3.0)}, folder / "model.pth")
    digest = hashlib.sha256((folder / "model.pth").read_bytes()).hexdigest()[:8]
    (folder / "model.pth").rename(folder / f"model-{digest}.pth")
    url = f"{address}/model-{digest}.pth"
    state = taeda.hub.load_state_dict_from_url(url, check_hash=True, progress=False)
    assert state["weight"].tolist() == [0.0, 1.0, 2.0]
    assert f'Downloading: "{url}"' in capsys.readouterr().out
    (folder / f"model-{digest}.pth").unlink()
    assert taeda.hub.load_state_dict_from_url(url, progress=False)["weight"].tolist() == [0.0, 1.0, 2.0]
    assert [file.name for file in (home / "checkpoints").iterdir()] == [f"model-{digest}.pth"]
    with pytest.raises(HTTPError, match="404"):
        taeda.hub.load_state_dict_from_url(f"{address}/other.pth", progress=False)


def test_a_wrong_sum_leaves_nothing(served, tmp_path):
    folder, address = served
    (folder / "data").write_bytes(b"0123")
    target = tmp_path / "kept"
    target.write_bytes(b"before")
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "abcd"'):
        taeda.hub.download_url_to_file(f"{address}/data", str(target), "abcd", progress=False)
    assert target.read_bytes() == b"before" and not list(tmp_path.glob(".*.tmp"))
    taeda.hub.download_url_to_file(f"{address}/data", str(target), progress=False)
    assert target.read_bytes() == b"0123"
    taeda.hub.download_url_to_file((folder / "data").as_uri(), str(target), progress=False)
    checked = tmp_path / "model-abcd1234.pth"
    checked.write_bytes(b"0123")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        taeda.hub.load_state_dict_from_url("https://host/model-abcd1234.pth", str(tmp_path), check_hash=True)


def test_a_bar_is_shown(served, tmp_path, capsys):
    folder, address = served
    (folder / "data").write_bytes(b"0" * 2048)
    taeda.hub.download_url_to_file(f"{address}/data", str(tmp_path / "kept"))
    assert "100" in capsys.readouterr().err


def test_weights_packed_in_an_archive(served, home, tmp_path):
    folder, address = served
    taeda.save({"weight": taeda.ones(2)}, tmp_path / "inner.pth")
    with zipfile.ZipFile(folder / "old.pth", "w") as archive:
        archive.write(tmp_path / "inner.pth", "inner.pth")
    assert taeda.hub.load_state_dict_from_url(f"{address}/old.pth", progress=False)["weight"].tolist() == [
        1.0,
        1.0,
    ]


def test_a_repository_is_fetched_once(cloned, home, capsys):
    load = partial(taeda.hub.load, "owner/name:main", "model", 3, trust_repo=True, skip_validation=True)
    assert load() == (4, True)
    assert (home / "trusted_list").read_text() == "owner_name\n"
    assert sorted(file.name for file in (home / "owner_name_main").iterdir()) == ["beside.py", "hubconf.py"]
    assert not list(home.glob("*.zip")) and not list(home.glob(".*.tmp"))
    (cloned / "main.zip").unlink()
    assert load(bias=False) == (4, False)
    assert "Using cache found in" in capsys.readouterr().err
    assert "model" in taeda.hub.list("owner/name:main") and "_hidden" not in taeda.hub.list("owner/name:main")
    assert taeda.hub.help("owner/name:main", "model") == "A model."
    with pytest.raises(HTTPError, match="404"):
        load(force_reload=True)
    assert load(verbose=False) == (4, True)


def test_a_repository_asks_first(cloned, home, monkeypatch):
    load = partial(taeda.hub.load, "owner/name:main", "model", 1, skip_validation=True)
    for answer, error in (("n", "Untrusted repository"), ("what", "Unrecognized response what")):
        monkeypatch.setattr("builtins.input", lambda text, answer=answer: answer)
        with pytest.raises(Exception, match=error):
            load()
    assert not (home / "owner_name_main").exists()
    monkeypatch.setattr("builtins.input", lambda text: "y")
    assert load() == (2, True)
    monkeypatch.setattr("builtins.input", None)  # not called again
    assert load() == (2, True)


@pytest.mark.parametrize(
    "name", ["../evil.py", "/evil.py", "top/../../evil.py", "C:\\evil.py", "..\\evil.py"]
)
def test_an_archive_stays_in_its_folder(cloned, home, name):
    repository(cloned / "main.zip", {"top/hubconf.py": HUBCONF, name: "print()"})
    with pytest.raises(ValueError, match="leads out of the folder"):
        taeda.hub.load("owner/name:main", "model", trust_repo=True, skip_validation=True)
    assert sorted(file.name for file in home.iterdir()) == ["trusted_list"]


def test_the_branch_is_looked_up(home, monkeypatch):
    asked = []

    def urlopen(request):
        url = request if isinstance(request, str) else request.full_url
        asked.append(url)
        if "/tree/main/" in url:
            raise HTTPError(url, 404, "not found", None, io.BytesIO())
        page = (
            [{"name": "master", "commit": {"sha": "12ab"}}]
            if url.endswith("branches?per_page=100&page=1")
            else []
        )
        return io.BytesIO(json.dumps(page).encode())

    monkeypatch.setattr(taeda.hub, "urlopen", urlopen)
    assert taeda.hub._parse_repo_info("owner/name") == ("owner", "name", "master")
    taeda.hub._validate_not_a_forked_repo("owner", "name", "master")
    taeda.hub._validate_not_a_forked_repo("owner", "name", "12a")
    with pytest.raises(ValueError, match="Cannot find fork in"):
        taeda.hub._validate_not_a_forked_repo("owner", "name", "fork")
    assert any("/tags?" in url for url in asked)
    with pytest.raises(ValueError, match=r"expected 'owner/name' or 'owner/name:ref', found 'name'"):
        taeda.hub.load("name", "model")


def test_without_a_connection_the_folder_is_found(home, monkeypatch):
    def urlopen(request):
        raise URLError("no connection")

    monkeypatch.setattr(taeda.hub, "urlopen", urlopen)
    with pytest.raises(RuntimeError, match="no internet connection"):
        taeda.hub.load("owner/name", "model")
    folder = home / "owner_name_main"
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text("def model(): return 5")
    assert taeda.hub.load("owner/name", "model") == 5
