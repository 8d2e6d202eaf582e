import pytest
import torch
from trained_models import MODELS, texts, trained


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


@pytest.fixture(scope="module")
def text_dir(tmp_path_factory):
    """The folder of a small hybrid model with a tokenizer."""
    from tiny_models import build_variant, byte_tokenizer

    folder = tmp_path_factory.mktemp("text")
    byte_tokenizer(["the sea is wide, the sky is blue"] * 3, 300, ["</s>"], eos_token="</s>").save_pretrained(folder)
    build_variant("lfm2", vocab_size=320).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def mnn_files(folders, tmp_path_factory):
    """Variant of tiny_models -> its file."""
    from custom_ops.onboarding.export import export

    made = {}

    def get(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / "model.mnn"
            export(folders(name), "mnn", made[name])
        return made[name]
    return get


@pytest.fixture(scope="module")
def gguf_folders(tmp_path_factory):
    """Model of gguf_models -> the folder it is saved in."""
    from gguf_models import save_model

    made = {}

    def folder(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            save_model(name, made[name])
        return made[name]
    return folder


@pytest.fixture
def gguf_file(gguf_folders, tmp_path):
    """Model of gguf_models -> its file, without a tokenizer."""
    from custom_ops.onboarding.export import export

    def write(name, type="f32", **options):
        export(gguf_folders(name), "gguf", tmp_path / "model.gguf", type=type, tokenizer=False, **options)
        return tmp_path / "model.gguf"
    return write


@pytest.fixture(scope="module", params=MODELS)
def real(request, tmp_path_factory):
    """A model that was trained: folder, transformers' model, tokenizer and text held back."""
    import tokenizers
    import transformers

    torch.set_num_threads(1)
    folder = trained(request.param, tmp_path_factory)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    return folder, model, tokenizer, texts()[1]
