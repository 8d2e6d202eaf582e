"""Family maps: what is refused, how they inherit, and that each fits the models transformers builds."""

import pytest
from tiny_models import FAMILIES, save

from custom_ops.onboarding import OnboardingError, UnknownFamily
from custom_ops.onboarding.checkpoint import Checkpoint
from custom_ops.onboarding.mapping import choose, family, load_maps
from custom_ops.onboarding.names import resolve_names
from custom_ops.onboarding.report import require
from custom_ops.onboarding.resolve import resolve_config
from custom_ops.onboarding.vocabulary import LEVELS, TRAITS


@pytest.fixture
def maps_with(tmp_path):
    """load_maps with files of a user's folder: {file name: text}."""
    def load(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        return load_maps([tmp_path])
    return load


@pytest.mark.parametrize("model_type", FAMILIES)
def test_map_fits_what_transformers_saves(model_type, tmp_path):
    save(model_type, tmp_path)
    checkpoint = Checkpoint(tmp_path)
    entry = family(model_type, config=checkpoint.config)
    found = resolve_config(entry, checkpoint.config)
    paths = resolve_names(entry, checkpoint.names, found)
    require([*found.report, *paths.report], model_type)
    assert paths.unused == []
    assert None not in found.values.values()
    assert len(paths.layers) == found["num_hidden_layers"] == len(found["layer_types"])


def test_every_sentence_is_there():
    assert all(entry.sentence for keys in LEVELS.values() for entry in keys.values())
    assert all(trait.sentence for trait in TRAITS.values())


def test_unknown_model_type_names_the_nearest():
    with pytest.raises(UnknownFamily, match=r"'qwen3_5_txt' is not mapped; nearest: 'qwen3_5_text'") as caught:
        family("qwen3_5_txt")
    assert caught.value.nearest[0] == "qwen3_5_text"


def test_a_file_in_a_folder_adds_a_family(maps_with):
    maps = maps_with(mine='ids = ["mine"]\ninherit = "qwen3"\n[attention]\no_proj = "out"\nq_norm = ""\n[traits]\nnorm_offset = true\n')
    entry = choose(maps, "mine", {})
    assert entry.attention == {"q_proj": ("q_proj",), "k_proj": ("k_proj",), "v_proj": ("v_proj",), "o_proj": ("out",), "k_norm": ("k_norm",)}
    assert entry.traits["norm_offset"] is True and entry.traits["qk_norm"] == "before_rope" and entry.replaces is None


def test_a_users_map_replaces_the_packages_and_may_inherit_it(maps_with):
    maps = maps_with(llama='ids = ["llama"]\ninherit = "llama"\n[model]\nembed = ["wte", "model.embed_tokens"]\n')
    entry = choose(maps, "llama", {})
    assert entry.model["embed"] == ("wte", "model.embed_tokens") and entry.replaces.name == "llama.toml"
    assert choose(maps, "qwen2", {}).model["embed"] == ("model.embed_tokens",)
    assert choose(maps, "qwen3", {}).model["embed"] == ("model.embed_tokens",)


BROKEN = {
    "unknown key": ('ids = ["x"]\ninherit = "llama"\n[attention]\nqproj = "q"\n', r"mine.toml: \[attention\] has no key 'qproj'; nearest: 'q_proj'"),
    "unknown level": ('ids = ["x"]\ninherit = "llama"\n[expert]\ngate = "g"\n', "unknown key 'expert'"),
    "unknown trait": ('ids = ["x"]\ninherit = "llama"\n[traits]\nresidul = "parallel"\n', "unknown trait 'residul'; nearest: 'residual'"),
    "wrong choice": ('ids = ["x"]\ninherit = "llama"\n[traits]\nresidual = "both"\n', "must be one of standard, parallel"),
    "number for a flag": ('ids = ["x"]\ninherit = "llama"\n[traits]\nnorm_offset = 1\n', "norm_offset .* must be bool, is 1"),
    "flag for a number": ('ids = ["x"]\ninherit = "llama"\n[traits]\nrope_default_theta = true\n', "must be int or float, is True"),
    "no ids": ('inherit = "llama"\n', "ids must be a list"),
    "ids a string": ('ids = "x"\ninherit = "llama"\n', "ids must be a list"),
    "source a number": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = 3\n', "must be a dotted path"),
    "source with spaces": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = "a b"\n', "must be a dotted path"),
    "source climbs": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = "../a"\n', "must be a dotted path"),
    "unknown parent": ('ids = ["x"]\ninherit = "lama"\n', "inherit 'lama' is not mapped; nearest: 'llama'"),
    "itself": ('ids = ["x"]\ninherit = "x"\n', "inherit 'x' is not mapped"),
    "no model level": ('ids = ["x"]\n[config]\nhidden_size = "h"\n[decoder]\nmlp = "m"\n[attention]\nq_proj = "q"\n', r"\[model\] is empty"),
    "unknown default": ('ids = ["x"]\ninherit = "llama"\n[defaults]\nhiden_size = 3\n', r"\[defaults\] has no key 'hiden_size'; nearest: 'hidden_size'"),
    "prefix without dot": ('ids = ["x"]\ninherit = "llama"\nconfig_prefix = "text_config"\n', "ends with a dot"),
    "optional of no level": ('ids = ["x"]\ninherit = "llama"\noptional = ["q_proj"]\n', "is no level.key"),
    "no TOML": ("ids = [", "cannot be read as TOML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_maps_are_refused(case, maps_with):
    text, message = BROKEN[case]
    with pytest.raises(OnboardingError, match=message):
        maps_with(mine=text)


def test_circles_and_doubles_are_refused(maps_with):
    with pytest.raises(OnboardingError, match="inherits from itself: a.toml -> b.toml -> a.toml"):
        maps_with(a='ids = ["a"]\ninherit = "b"\n', b='ids = ["b"]\ninherit = "a"\n')
    with pytest.raises(OnboardingError, match="id 'a' is also in a.toml"):
        maps_with(a='ids = ["a"]\ninherit = "llama"\n', b='ids = ["a"]\ninherit = "llama"\n')


def test_when_tells_two_maps_of_one_id_apart(maps_with):
    maps = maps_with(a='ids = ["a"]\ninherit = "llama"\n',
                     b='ids = ["a"]\ninherit = "llama"\nwhen = { vocab_size = 7 }\n[model]\nlm = "head"\n')
    assert choose(maps, "a", {"vocab_size": 7}).model["lm"] == ("head",)
    assert choose(maps, "a", {"vocab_size": 8}).model["lm"] == ("lm_head",)


def test_folders_must_hold_maps(tmp_path):
    with pytest.raises(OnboardingError, match="holds no map"):
        load_maps([tmp_path])
    with pytest.raises(OnboardingError, match="no such folder"):
        load_maps([tmp_path / "none"])
