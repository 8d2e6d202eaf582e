import pytest
import torch


@pytest.fixture
def one_thread():
    """Tests run side by side; and no gradients."""
    torch.set_num_threads(1)
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Variant of tiny_models -> (transformers' model, the folder it is saved in)."""
    from tiny_models import build_variant

    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            model = build_variant(name)
            model.save_pretrained(folder)
            made[name] = model, folder
        return made[name]
    return get


@pytest.fixture(scope="module")
def folders(saved):
    """Variant of tiny_models -> the folder it is saved in."""
    return lambda name: saved(name)[1]
