"""Foreign or incomplete files in the folder of checkpoints: they are kept and reported."""

import json
import logging
from pathlib import Path

import pytest

from app.routes.checkpoints_render import checkpoint
from core.errors import CheckpointCorrupt, CheckpointExists, CheckpointNotFound
from core.journal import BEFORE_FIRST
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest, Note
from core.snapshot.image import image
from tests.conftest import ServerProcess
from tests.core.world import new_engine

from .service import Api, refused

FOREIGN = b"not of this service"


@pytest.fixture
def kept(tmp_path: Path) -> CheckpointFolder:
    return CheckpointFolder(tmp_path)


def save(kept: CheckpointFolder, name: str, key: str | None = None) -> Note:
    kept.save(CheckpointRequest(name, key, "2026-01-01T00:00:00.000Z"), BEFORE_FIRST, 0, image(new_engine()))
    return kept.find(name)


def files(kept: CheckpointFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in kept.path.iterdir() if path.is_file()}


def listed(kept: CheckpointFolder) -> list[str]:
    return [note.name for note in kept.all()]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_file_without_a_note_is_kept_and_told(kept: CheckpointFolder, key: str | None) -> None:
    (kept.path / "a.checkpoint").write_bytes(FOREIGN)
    for refuses in (lambda: kept.made_by("a", key), lambda: save(kept, "a", key)):
        with pytest.raises(CheckpointExists, match=r"a\.checkpoint is there without a note"):
            refuses()
    for asks in (kept.find, kept.read, kept.delete):
        with pytest.raises(CheckpointNotFound, match=r"a\.checkpoint has no note"):
            asks("a")
    assert listed(kept) == []
    assert files(kept) == {"a.checkpoint": FOREIGN}


def test_a_link_that_leads_nowhere_is_kept_too(kept: CheckpointFolder) -> None:
    (kept.path / "a.checkpoint").symlink_to("nowhere")
    with pytest.raises(CheckpointExists):
        save(kept, "a")
    assert (kept.path / "a.checkpoint").readlink() == Path("nowhere")


def test_a_note_that_names_another_is_refused_and_not_listed(
    kept: CheckpointFolder, caplog: pytest.LogCaptureFixture
) -> None:
    save(kept, "a")
    for ending in (".checkpoint", ".json"):
        (kept.path / f"b{ending}").write_bytes((kept.path / f"a{ending}").read_bytes())
    before = files(kept)
    with caplog.at_level(logging.WARNING):
        assert listed(kept) == ["a"]
    assert "of the checkpoint 'a', not of 'b'" in caplog.text
    for refuses in (kept.find, kept.read, kept.delete, lambda name: kept.made_by(name, "k")):
        with pytest.raises(CheckpointCorrupt, match=r"b\.json: a note of the checkpoint 'a', not of 'b'"):
            refuses("b")
    with pytest.raises(CheckpointCorrupt):
        save(kept, "b")
    assert files(kept) == before


@pytest.mark.parametrize("text", [b"{}", b"", b"\xff", b'{"name": "b"}', b"[]", None])
def test_a_note_that_is_none_hides_no_other_and_is_kept(kept: CheckpointFolder, text: bytes | None) -> None:
    save(kept, "a")
    note = kept.path / "b.json"
    if text is None:
        note.mkdir()
    else:
        note.write_bytes(text)
    before = files(kept)
    assert listed(kept) == ["a"]
    for refuses in (
        kept.find,
        kept.read,
        kept.delete,
        lambda name: kept.made_by(name, None),
        lambda _: save(kept, "b"),
    ):
        with pytest.raises(CheckpointCorrupt, match=r"b\.json: not a note"):
            refuses("b")
    assert files(kept) == before
    assert note.exists()


def test_a_note_has_the_members_that_notes_in_folders_have(kept: CheckpointFolder) -> None:
    note = save(kept, "a", "k")
    told = {
        "name": "a", "revision": 0, "bytes": note.bytes, "sha256": note.sha256,
        "created_at": "2026-01-01T00:00:00.000Z", "key": "k",
    }  # fmt: skip
    assert (kept.path / "a.json").read_bytes() == json.dumps(told, separators=(",", ":")).encode()
    del told["key"]  # which is the caller's alone
    assert checkpoint(note).body == json.dumps(told, separators=(",", ":")).encode()


def test_a_file_whose_note_is_damaged_can_be_deleted(kept: CheckpointFolder) -> None:
    save(kept, "a")
    (kept.path / "a.json").write_bytes(b"{")
    kept.delete("a")
    assert files(kept) == {}


def test_names_that_no_call_could_mean_are_not_listed(kept: CheckpointFolder) -> None:
    save(kept, "a")
    note = json.loads((kept.path / "a.json").read_bytes())
    for stem in (".hidden", "b c"):
        (kept.path / f"{stem}.json").write_text(json.dumps({**note, "name": stem}))
        (kept.path / f"{stem}.checkpoint").write_bytes((kept.path / "a.checkpoint").read_bytes())
    assert listed(kept) == ["a"]


class Killed(BaseException):
    """Stands for a kill."""


@pytest.fixture(params=["note", "state"])
def half(request: pytest.FixtureRequest, kept: CheckpointFolder, monkeypatch: pytest.MonkeyPatch) -> CheckpointFolder:
    """A save with key "k" that was killed before its note, or its file, had its name."""
    replace, unlink = Path.replace, Path.unlink
    ending = {"note": ".json", "state": ".checkpoint"}[request.param]

    def killed(path: Path, target: Path) -> Path:
        if target.suffix == ending:
            raise Killed
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # whoever is killed does not tidy up
        with pytest.raises(Killed):
            save(kept, "a", "k")
    assert Path.unlink is unlink
    assert files(kept)
    return kept


@pytest.mark.parametrize("key", [None, "k", "other"])
def test_a_save_that_was_killed_is_no_checkpoint_and_can_be_said_again(half: CheckpointFolder, key: str | None) -> None:
    assert listed(half) == []
    assert half.made_by("a", key) is None
    assert save(half, "a", key).key == key
    assert sorted(files(half)) == ["a.checkpoint", "a.json"]
    assert half.read("a")


def test_a_delete_that_was_killed_can_be_said_again(kept: CheckpointFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    save(kept, "a")
    unlink = Path.unlink

    def killed(path: Path) -> None:
        if path.suffix == ".json":
            raise Killed
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            kept.delete("a")
    with pytest.raises(CheckpointCorrupt, match=r"a\.checkpoint is not there"):
        kept.find("a")
    kept.delete("a")
    assert files(kept) == {}


def test_what_was_written_aside_goes_with_its_checkpoint(kept: CheckpointFolder) -> None:
    save(kept, "a")
    for name in ("a.checkpoint.new", "a.json.new", "b.checkpoint.new"):
        (kept.path / name).write_bytes(b"left by a kill")
    kept.delete("a")
    assert sorted(files(kept)) == ["b.checkpoint.new"]


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_a_server_says_so(tmp_path: Path, scheme: str) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "lone.checkpoint").write_bytes(FOREIGN)
    journal = "memory:" if scheme == "memory" else f"file:{tmp_path}/journal"
    server = ServerProcess("--journal", journal, "--checkpoints", str(folder))
    api = Api(server.url)
    with api.http:
        api.insert("a")
        refused(api.send("POST", "/v1/checkpoints", {"name": "lone"}), 409, "checkpoint-exists", "lone.checkpoint")
        api.ok("POST", "/v1/checkpoints", {"name": "good"})
        for ending in (".checkpoint", ".json"):
            (folder / f"copy{ending}").write_bytes((folder / f"good{ending}").read_bytes())
        assert [one["name"] for one in api.ok("GET", "/v1/checkpoints")["checkpoints"]] == ["good"]
        for method, path in (("GET", ""), ("POST", "/restore"), ("DELETE", "")):
            body = {} if method == "POST" else None
            refused(
                api.send(method, f"/v1/checkpoints/copy{path}", body), 409, "checkpoint-corrupt", "'good'", "'copy'"
            )
        api.ok("DELETE", "/v1/checkpoints/good")
    assert (folder / "lone.checkpoint").read_bytes() == FOREIGN
    assert sorted(path.name for path in folder.iterdir()) == ["copy.checkpoint", "copy.json", "lone.checkpoint"]
    assert server.stop() == 0
