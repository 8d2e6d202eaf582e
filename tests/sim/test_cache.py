"""Where compiled kernels are kept: what cannot be written says so, and what to do."""

import pytest
from custom_ops.sim import cache


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("CUSTOM_OPS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_entry_is_made_once(root):
    made = []
    for was_there in (False, True):
        path, found = cache.obtain("units", "a.so", lambda output: (made.append(output), output.write_text("a")))
        assert (path, found, path.read_text()) == (root / "units" / "a.so", was_there, "a")
    assert len(made) == 1 and [path.name for path in (root / "units").iterdir()] == ["a.so"]


def test_what_raises_leaves_nothing(root):
    def fails(output):
        output.write_text("half")
        raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        cache.obtain("units", "a.so", fails)
    assert not list((root / "units").iterdir())


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CUSTOM_OPS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"the cache .*/file/cache cannot be written \(Not a directory\): set CUSTOM_OPS_CACHE_DIR"):
        cache.obtain("units", "a.so", lambda output: output.write_text("a"))


def test_what_is_there_needs_no_writing(root, monkeypatch):
    cache.obtain("units", "a.so", lambda output: output.write_text("a"))

    def refuse():
        raise AssertionError("nothing is to be written")

    monkeypatch.setattr(cache, "require_writable", refuse)
    assert cache.obtain("units", "a.so", lambda output: None)[1]
