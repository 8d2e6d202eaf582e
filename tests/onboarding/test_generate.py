"""Sampling, sessions, streaming and perplexity, against transformers."""

import math

import pytest
import torch

pytest.importorskip("transformers")  # the extra `onboard`
from tiny_models import build_variant, byte_tokenizer  # noqa: E402
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,  # noqa: E402
                          TopKLogitsWarper, TopPLogitsWarper)

from custom_ops.onboarding import OnboardingError  # noqa: E402
from custom_ops.onboarding.generate import Session  # noqa: E402
from custom_ops.onboarding.perplexity import perplexity, windows  # noqa: E402
from custom_ops.onboarding.sampling import Sampling  # noqa: E402
from custom_ops.onboarding.text import Stream, Text  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

VOCAB = 384  # 256 bytes and what a small text teaches
WORDS = "Ein kleiner Text über Größe, naïve cafés und 模型。 Once more: the model reads the text, the text reads the model. 😀 "

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Model directories with a byte-level tokenizer, and transformers' models."""
    template = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
    fast = byte_tokenizer([WORDS * 3], VOCAB, ["<pad>", "<s>", "</s>"], eos_token="</s>", bos_token="<s>", pad_token="<pad>",
                          chat_template=template)
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            model = build_variant(name, vocab_size=VOCAB)
            model.save_pretrained(folder)
            fast.save_pretrained(folder)
            made[name] = folder, model
        return made[name]
    return get


# --- sampling

OPTIONS = [dict(temperature=0.7), dict(temperature=1.0, top_k=5), dict(temperature=1.3, top_p=0.8), dict(temperature=1.0, min_p=0.1),
           dict(temperature=0.9, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.3), dict(temperature=1.0, top_p=1e-6)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_probabilities_are_those_of_transformers(options, rng):
    sampling, seen = Sampling(**options), [3, 7, 7, 50]
    logits = 3 * torch.randn(97, generator=rng)
    steps = LogitsProcessorList()
    if sampling.repetition_penalty != 1:
        steps.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    steps.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        steps.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        steps.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p:
        steps.append(MinPLogitsWarper(sampling.min_p))
    want = steps(torch.tensor([seen]), logits[None].clone())[0].softmax(-1)
    torch.testing.assert_close(sampling.probabilities(logits, seen), want, rtol=1e-5, atol=1e-7)


def test_greedy_takes_the_best_token_and_penalties_change_it(rng):
    logits = torch.tensor([1.0, 3.0, 2.9, -1.0])
    assert Sampling().draw(logits) == 1
    assert Sampling(repetition_penalty=1.5).draw(logits, [1]) == 2
    assert Sampling(temperature=0, top_k=3, top_p=0.5).probabilities(logits).tolist() == [0, 1, 0, 0]
    draws = [Sampling(temperature=1.0).draw(logits, rng=torch.Generator().manual_seed(i)) for i in range(400)]
    assert abs(draws.count(1) / 400 - logits.softmax(-1)[1].item()) < 0.1


@pytest.mark.parametrize("name, value", [("temperature", -1), ("top_k", -1), ("top_p", 0), ("top_p", 1.1), ("min_p", 2),
                                         ("repetition_penalty", 0), ("repetition_penalty", math.inf), ("temperature", math.nan)])
def test_sampling_refuses(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Sampling(**{name: value})


@pytest.mark.parametrize("temperature", [1e-300, 1e-45, 1e-38, 1e-6])
def test_cold_is_greedy(temperature, rng):
    logits = torch.randn(500, generator=rng) * 1e4
    assert Sampling(temperature).probabilities(logits)[logits.argmax()] == 1


def test_hot_is_even():
    assert Sampling(math.inf).probabilities(torch.tensor([-3.0, 9.0])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite(value, temperature):
    with pytest.raises(OnboardingError, match="not finite: float16 overflows"):
        Sampling(temperature).draw(torch.tensor([1.0, value], dtype=torch.float16))


# --- sessions


@pytest.mark.parametrize("name", ["llama", "gemma2", "lfm2", "qwen3_next"])
def test_greedy_text_is_that_of_transformers(name, folders):
    folder, reference = folders(name)
    text = Text(folder)
    prompt = text.encode("the model reads")
    want = reference.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=None)[0, len(prompt):].tolist()
    session = Session(load(folder))
    assert list(session.generate(prompt, 20)) == want
    assert session.speed.prompt == len(prompt) and session.speed.tokens == 20 and session.speed.seconds > 0


@pytest.mark.parametrize("name", ["llama", "gemma2", "lfm2", "qwen3_next"])
def test_a_prefix_is_read_once(name, folders):
    model = load(folders(name)[0])
    session, prefix = Session(model), list(range(10, 40))
    list(session.generate(prefix, 7))
    for question in ([50, 51], [60], [50, 52, 53]):
        got = list(session.generate(prefix + question, 7))
        assert got == list(Session(model).generate(prefix + question, 7))
        assert session.speed.reused == 30 and session.speed.prompt == len(question)
        session.read(prefix)  # again the snapshot of the prefix
    assert list(session.generate([5, 6], 3)) == list(Session(model).generate([5, 6], 3)) and session.speed.reused == 0
    session.read(prefix)
    session.read(prefix + [1, 2, 3])
    assert session.speed.reused == 30


def test_stops_and_seeds(folders):
    folder, _ = folders("llama")
    session = Session(load(folder))
    free = list(session.generate([9, 8, 7], 12, Sampling(temperature=1.0), seed=3))
    assert free == list(session.generate([9, 8, 7], 12, Sampling(temperature=1.0), seed=3)) and len(free) == 12
    assert free != list(session.generate([9, 8, 7], 12, Sampling(temperature=1.0), seed=4))
    assert list(session.generate([9, 8, 7], 12, Sampling(temperature=1.0), seed=3, stops={free[5]})) == free[: free.index(free[5])]
    with pytest.raises(ValueError, match="at least one token"):
        session.read([])


# --- text


def test_stream_gives_whole_characters(folders):
    text = Text(folders("llama")[0])
    for sentence in (WORDS, "😀😀 über 模", " leading space", "a"):
        ids, stream = text.encode(sentence, special=False), Stream(text)
        pieces = [stream.put(token) for token in ids] + [stream.end()]
        assert "".join(pieces) == text.decode(ids) == sentence
        assert not any("\ufffd" in piece for piece in pieces) and sum(map(bool, pieces)) > len(ids) / 4
    half = text.encode("😀", special=False)[:-1]
    stream = Stream(text)
    assert "".join(stream.put(token) for token in half) == "" and "\ufffd" in stream.end()


def test_stops_and_chat(folders, tmp_path):
    folder, _ = folders("llama")
    text = Text(folder)
    assert text.stops == {2}
    assert "assistant: " in text.tokenizer.decode(text.chat("hello", system="be brief")) and "system: be brief" in text.tokenizer.decode(
        text.chat("hello", system="be brief"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(OnboardingError, match="no tokenizer"):
        Text(tmp_path)


DEEP = "[" * 100_000
BROKEN = {  # files of the folder, and what is said
    "no_json": ({"tokenizer.json": "{"}, "cannot load the tokenizer"),
    "list": ({"tokenizer.json": "[]"}, "cannot load the tokenizer"),
    "empty": ({"tokenizer.json": '{"model": {"type": "BPE", "vocab": {}, "merges": []}}'}, "cannot load the tokenizer"),
    "deep": ({"tokenizer.json": DEEP}, "cannot load the tokenizer"),
    "settings": ({"tokenizer_config.json": "[1]"}, "cannot load the tokenizer"),
    "class": ({"tokenizer_config.json": '{"tokenizer_class": 5}'}, "cannot load the tokenizer"),
    "code": ({"tokenizer_config.json": '{"auto_map": {"AutoTokenizer": ["own.Own", null]}}', "own.py": "raise SystemExit(3)"},
             "cannot load the tokenizer"),
    "config": ({"config.json": DEEP}, "config.json: JSON is nested too deeply"),
    "generation": ({"generation_config.json": "[1]"}, "generation_config.json: must hold an object, holds list"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_tokenizers(case, folders, tmp_path):
    files, message = BROKEN[case]
    folder = copied(folders("llama")[0], tmp_path)
    for name, content in files.items():
        (folder / name).write_text(content)
    with pytest.raises(OnboardingError, match=message):
        Text(folder)


@pytest.mark.parametrize("template", ["{% for", "{{ messages[0].a.b }}", "{{ raise_exception('no') }}", "{{ 1 / 0 }}"])
def test_broken_chat_templates(template, folders, tmp_path):
    folder = copied(folders("llama")[0], tmp_path)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(OnboardingError, match="chat template refuses this conversation: ."):
        Text(folder).chat("hello")


def copied(folder, target):
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_stops_of_odd_configurations(folders, tmp_path):
    folder = copied(folders("llama")[0], tmp_path)
    (folder / "generation_config.json").write_text('{"eos_token_id": {"a": 1}, "text_config": 5}')
    assert Text(folder).stops == {2}
    (folder / "generation_config.json").write_text('{"eos_token_id": 0, "text_config": {"eos_token_id": 5}}')
    assert Text(folder).stops == {0, 2}


def test_half_characters(folders):
    with pytest.raises(OnboardingError, match="the text is no Unicode"):
        Text(folders("llama")[0]).encode("a\udcff")


# --- perplexity


@pytest.mark.parametrize("count, context, stride", [(2, 4, 1), (10, 4, 2), (11, 4, 3), (100, 10, 1), (5, 512, 256), (512, 512, 256),
                                                    (513, 512, 256)])
def test_windows_score_every_token_once(count, context, stride):
    found = windows(count, context, stride)
    assert [t for begin, first, end in found for t in range(first, end)] == list(range(1, count))
    assert all(end - begin <= context and begin < first < end for begin, first, end in found)
    assert all(first - begin >= context - stride for begin, first, _ in found[1:])


def test_windows_refuse_a_stride_without_context():
    with pytest.raises(ValueError, match="stride must be 1 to context - 1 = 3, got 4"):
        windows(10, 4, 4)


@pytest.mark.parametrize("name", ["gemma2", "lfm2", "qwen3_next"])
def test_perplexity_is_that_of_transformers(name, folders, rng):
    folder, reference = folders(name)
    tokens = torch.randint(VOCAB, (150,), generator=rng)
    seen = []
    ours = perplexity(load(folder), tokens.tolist(), context=40, stride=25, progress=lambda done, of: seen.append((done, of)))
    total = 0.0
    for begin, first, end in windows(150, 40, 25):
        logits = reference(tokens[None, begin:end]).logits[0]
        total += sum(-logits[t - 1 - begin].double().log_softmax(-1)[tokens[t]].item() for t in range(first, end))
    assert math.isclose(ours.nll, total / 149, rel_tol=1e-5) and math.isclose(ours.value, math.exp(ours.nll))
    assert ours.tokens == 149 and seen[-1] == (len(seen), len(seen)) and "perplexity" in str(ours)
    assert ours.losses.shape == (149,) and math.isclose(ours.losses.mean().item(), ours.nll) and len(ours.windows) == len(seen)


def test_perplexity_of_a_model_that_overflows(folders):
    model = load(folders("llama")[0])
    model.lm.weight[5] = math.inf
    with pytest.raises(OnboardingError, match="11 of 11 losses are not finite"):
        perplexity(model, range(3, 15), 8)
