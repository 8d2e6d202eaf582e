"""Sequences in MNN: several, in turns and by threads, going back, and as a Session."""

import sys
import threading

import pytest
import torch

pytest.importorskip("MNN", reason="pip install 'custom_ops[mnn]'")
pytest.importorskip("onnx", reason="pip install 'custom_ops[mnn]'")
pytest.importorskip("transformers")

from mnn_models import TOKENS, require_equal  # noqa: E402

from custom_ops.onboarding.export.mnn.runtime import MnnModel  # noqa: E402
from custom_ops.onboarding.generate import Session  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def test_sequences_of_a_plain_model(mnn_files, folders):
    """Two at a time; back to a token and on from there."""
    model, want = MnnModel(mnn_files("qwen3_tied")), load(folders("qwen3_tied"))(TOKENS)
    one, two = model.new_memory(), model.new_memory()
    model(TOKENS[:, :20], one)
    model(TOKENS[:, :9], two)
    for memory, first in ((one, 20), (two, 9)):
        require_equal("qwen3_tied", model(TOKENS[:, first:], memory), want[:, first:])
    one.rollback(31)
    assert one.lengths == [31] and one.nbytes() == 31 * 4 * 2 * 2 * 32 * 4  # tokens, layers, keys and values, heads, sizes, bytes
    require_equal("qwen3_tied", model(TOKENS[:, 31:], one), want[:, 31:])
    with pytest.raises(RuntimeError, match="48 tokens go back"):
        one.rollback(49)


@pytest.fixture
def switches():
    """Threads take turns at every chance."""
    kept = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(kept)


@pytest.mark.parametrize("name", ["lfm2", "llama"])
def test_threads_never_mix_their_sequences(name, mnn_files, folders, switches):
    """Each call is right, or, where another sequence has the linear layers, refused."""
    model, want = MnnModel(mnn_files(name)), load(folders(name))(TOKENS)
    wrong, refused = [], []

    def run():
        for _ in range(8):
            memory = model.new_memory()
            try:
                for start, end in ((0, 20), (20, 21), (21, 30)):
                    require_equal(name, model(TOKENS[:, start:end], memory), want[:, start:end])
            except Exception as error:
                (refused if "another sequence has taken the state" in str(error) else wrong).append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and (name == "lfm2" or not refused)


@pytest.mark.parametrize("name", ["lfm2", "qwen3_5_text"])
def test_sequences_of_a_hybrid_model(name, mnn_files, folders):
    """One at a time, and every start is one; whose state is gone cannot go on."""
    model, want = MnnModel(mnn_files(name)), load(folders(name))(TOKENS)
    first, second = model.new_memory(), model.new_memory()
    model(TOKENS[:, :20], first)
    require_equal(name, model(TOKENS[:, :1], second), want[:, :1])
    with pytest.raises(RuntimeError, match="another sequence has taken the state"):
        model(TOKENS[:, 20:], first)
    require_equal(name, model(TOKENS[:, 1:], second), want[:, 1:])
    assert not second.can_rollback(47) and second.can_rollback(0)
    with pytest.raises(RuntimeError, match="48 tokens go back to none, not to 47"):
        second.rollback(47)
    first.reset()
    require_equal(name, model(TOKENS, first), want)
    assert first.kind == "hybrid"


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_session(name, mnn_files, folders):
    """Prompts that share a beginning, the second continuing the first's text."""
    prompt = TOKENS[0].tolist()
    found = []
    for model in (load(folders(name)), MnnModel(mnn_files(name))):
        session = Session(model)
        texts = [list(session.generate(ids, 12)) for ids in (prompt, prompt[:40], prompt)]
        assert texts[0] == texts[2]
        found.append(texts)
    assert found[0] == found[1]
    assert session.speed.reused == (40 if name == "llama" else 0)


def test_wrong_tokens(mnn_files):
    model = MnnModel(mnn_files("llama"))
    for tokens, message in ((torch.tensor([[96]]), "0 to 95, got 96"), (torch.tensor([[-1]]), "got -1"), (TOKENS[0], r"\[1, L\]"),
                            (TOKENS.repeat(2, 1), r"got \[2, 48\]"), (TOKENS.float(), "float32"), (TOKENS[:, :0], r"\[1, 0\]")):
        with pytest.raises(RuntimeError, match=message):
            model(tokens)
