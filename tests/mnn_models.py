"""What the tests of MNN files share: a prompt, and how near MNN's logits must be."""

import torch
from tiny_models import DELTA_RULE, LARGER

TOKENS = torch.randint(3, LARGER["vocab_size"], (1, 48), generator=torch.Generator().manual_seed(3))


def require_equal(name, got, want):
    """1e-4 of logits up to 12: three times what MNN's exponentials can do (test_exponentials, test_logits_with_errors_of_mnns_size);
    measured 5e-5. gemma4, whose scores are not scaled down, is moved up to 9e-5 by errors of that size: 3e-4, measured 9e-5. Models of the
    delta rule magnify rounding (see test_onnx.py): 1e-3, measured 2e-4; the operator alone is held to 1e-6 below."""
    got, want = got.double(), want.double()
    assert got.shape == want.shape and want.std() > 0.5
    largest, square = (1e-3, 1e-8) if name in DELTA_RULE else (3e-4, 1e-9) if name == "gemma4" else (1e-4, 1e-9)
    assert (got - want).abs().max() <= largest
    assert ((got - want) ** 2).sum() <= square * (want**2).sum()


def in_pieces(model, *sizes):
    """Logits of TOKENS, call after call."""
    memory, parts = model.new_memory(), TOKENS.split(sizes, 1)
    return torch.cat([model(part, memory) for part in parts], 1)
