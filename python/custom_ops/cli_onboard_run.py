"""Command line: `custom-ops onboard verify`, `generate` and `perplexity`, the commands that load weights."""

from __future__ import annotations

from typing import NamedTuple

import click

from .cli_onboard import map_dirs, printable
from .cli_progress import bar, step
from .onboarding import OnboardingError

_FINDINGS = 1
_DTYPES = ("float32", "bfloat16", "float16")
_SEED = click.IntRange(0, 2**63 - 1)
_THREADS = click.IntRange(1, 1024)  # with very many OpenMP ends the process


def _page_option(text: str):
    def free(ctx, parameter, path):  # before a long run, not after it
        if path:
            from .onboarding.output import require_free

            require_free(path, overwrite=True)
        return path
    return click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", callback=free, help=text)


def _write_page(text: str, path: str) -> None:
    from .onboarding.output import atomic

    with atomic(path, overwrite=True) as part:
        part("").write_text(text, encoding="utf-8")


def _dtype(name: str):
    import torch

    return getattr(torch, name)


@click.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@map_dirs
@click.option("--dtype", type=click.Choice(_DTYPES), default="float32", show_default=True, help="Of both models.")
@click.option("--batch", type=click.IntRange(1), default=2, show_default=True, help="Prompts.")
@click.option("--length", type=click.IntRange(1), default=48, show_default=True, help="Tokens of a prompt; beyond a window more is proved.")
@click.option("--seed", type=_SEED, default=0, show_default=True, help="Of the random prompts.")
@_page_option("Write the report as a page, too.")
def verify(model_dir, map_dirs, dtype, batch, length, seed, html):
    """Compare a model on these operators with transformers.

    Five checkpoints (embedding, first layer, last layer, final norm, logits) of a prompt and of the first token after it, every
    value. Where they differ, the first block and part that does, and the mistake that explains it. docs/onboarding/verify.md says how.

    \b
    Examples:
      custom-ops onboard verify models/lfm2-350m
      custom-ops onboard verify models/new --map-dir maps --length 600
    \b
    Exit codes: 0 the models agree, 1 they differ, 2 a file cannot be read or transformers is missing.
    """
    from .onboarding.verify import verify as compare

    with bar("weights") as loading:
        report = compare(model_dir, map_dirs=map_dirs, dtype=_dtype(dtype), batch=batch, length=length, seed=seed, progress=step,
                         loading=loading)
    click.echo(printable(str(report)))
    if html:
        from .onboarding.page import page

        _write_page(page(report), html)
    if not report.passed:
        raise SystemExit(_FINDINGS)


def _model_options(command):
    for option in reversed([
        map_dirs,
        click.option("--dtype", type=click.Choice(_DTYPES), help="Of the model.  [default: the checkpoint's]"),
        click.option("--threads", type=_THREADS, help="Of PyTorch.  [default: all]"),
    ]):
        command = option(command)
    return command


class _Loaded(NamedTuple):
    text: object  # a Text
    model: object  # an LlmModel or MnnModel
    vocab: int
    positions: int | None  # that the model is made for, where config.json says so


def _load(model_dir, map_dirs, dtype, threads) -> _Loaded:
    import torch

    from .onboarding.source import open_source
    from .onboarding.text import Text
    from .onboarding.weights import load

    if threads:
        torch.set_num_threads(threads)
    source = open_source(model_dir, map_dirs)  # first what is small and may be wrong
    text = Text(model_dir)
    with bar("loading") as progress:
        model = load(source, dtype=_dtype(dtype) if dtype else None, progress=progress)
    return _Loaded(text, model, model.architecture.vocab, source.found.get("max_position_embeddings"))


def _load_mnn(model_dir, path, map_dirs, dtype, threads) -> _Loaded:
    from .onboarding.export.mnn.runtime import MnnModel
    from .onboarding.text import Text

    if dtype or map_dirs:
        option = "--dtype" if dtype else "--map-dir"
        raise click.UsageError(f"{option} is for reading the checkpoint's weights; with --mnn those of the export are run")
    text = Text(model_dir)
    step(f"loading {path}")
    model = MnnModel(path, threads or 1)
    if len(text.tokenizer) > model.vocab:
        raise click.UsageError(f"--mnn: {path} knows {model.vocab} tokens, the tokenizer of {model_dir} has {len(text.tokenizer)}")
    return _Loaded(text, model, model.vocab, None)


def _read_text(file: str) -> str:
    """Of a UTF-8 file, or of standard input for -."""
    try:
        with click.open_file(file, encoding="utf-8") as content:
            return content.read()
    except UnicodeDecodeError as error:
        raise OnboardingError(f"{'standard input' if file == '-' else file}: is no UTF-8 text: {error}") from None


def _tokens(ids: list[int], vocab: int, model_dir: str) -> list[int]:
    if ids and max(ids) >= vocab:
        raise OnboardingError(f"{model_dir}: the tokenizer gives token {max(ids)}, the model has {vocab}: they do not belong together")
    return ids


def _note_positions(needed: int, positions: int | None) -> None:
    if positions and needed > positions:
        click.echo(f"note: {needed} tokens are more than the {positions} that the model is made for (max_position_embeddings of "
                   "config.json): what comes beyond may be poor", err=True)


@click.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@click.option("--prompt", "-p", required=True, help="Text to go on with; - reads standard input.")
@click.option("--chat", is_flag=True, help="The prompt is a user's message, in the model's chat template.")
@click.option("--system", help="With --chat: the system message.")
@click.option("--max-tokens", "-n", type=click.IntRange(1), default=128, show_default=True, help="Most tokens that are written.")
@click.option("--temperature", type=float, default=0.0, show_default=True, help="0 takes the best token each time.")
@click.option("--top-k", type=int, default=0, help="Of the k best tokens.")
@click.option("--top-p", type=float, default=1.0, help="Of the fewest best tokens with this probability together.")
@click.option("--min-p", type=float, default=0.0, help="Of tokens with this share of the best one's probability.")
@click.option("--repetition-penalty", type=float, default=1.0, help="Above 1: tokens that were there come less.")
@click.option("--seed", type=_SEED, default=0, show_default=True, help="Of the tokens that are drawn.")
@click.option("--ignore-eos", is_flag=True, help="Go on after the token that ends a text.")
@click.option("--mnn", type=click.Path(dir_okay=False), metavar="FILE", help="Run this export of the model in MNN, on --threads (1).")
@_model_options
def generate(model_dir, prompt, chat, system, max_tokens, seed, ignore_eos, mnn, map_dirs, dtype, threads, **sampling):
    """Continue a text; tokens are shown as they come, their speed at the end.

    \b
    Examples:
      custom-ops onboard generate models/lfm2-350m -p "The sea is"
      custom-ops onboard generate models/lfm2-350m --chat -p "Why is the sky blue?" --temperature 0.7 --top-p 0.9
      custom-ops onboard generate models/lfm2-350m --mnn lfm2.mnn -p "The sea is"
    \b
    Exit codes: 0 fine, 2 a file cannot be read.
    """
    from .onboarding.generate import Session
    from .onboarding.sampling import Sampling
    from .onboarding.text import Stream

    if system and not chat:
        raise click.UsageError("--system goes with --chat")
    try:
        options = Sampling(**sampling)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    prompt = _read_text("-") if prompt == "-" else prompt
    loaded = _load_mnn(model_dir, mnn, map_dirs, dtype, threads) if mnn else _load(model_dir, map_dirs, dtype, threads)
    text, model, vocab, positions = loaded
    ids = _tokens(text.chat(prompt, system) if chat else text.encode(prompt), vocab, model_dir)
    if not ids:
        raise click.UsageError("--prompt: the tokenizer makes no token of it")
    _note_positions(len(ids) + max_tokens, positions)
    session, stream = Session(model), Stream(text)
    for token in session.generate(ids, max_tokens, options, stops=frozenset() if ignore_eos else text.stops, seed=seed):
        click.echo(printable(stream.put(token)), nl=False)
    click.echo(printable(stream.end()))
    click.echo(f"{session.speed}, {session.memory.kind} memory {session.memory.nbytes() / 2**20:.1f} MiB", err=True)


@click.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--context", type=click.IntRange(2), default=512, show_default=True, help="Tokens of a window.")
@click.option("--stride", type=click.IntRange(1), help="New tokens of a window; the others are context.  [default: half of it]")
@click.option("--max-tokens", type=click.IntRange(2), help="Only so many of the text.")
@_page_option("Write a page, too, with the loss along the text.")
@_model_options
def perplexity(model_dir, file, context, stride, max_tokens, html, map_dirs, dtype, threads):
    """Perplexity of a text file: exp of the mean negative log likelihood of its tokens.

    Every token but the first is scored once, with at least context - stride tokens before it (in the first window with what there is).

    \b
    Example:
      custom-ops onboard perplexity models/lfm2-350m wiki.test.txt --context 512
    \b
    Exit codes: 0 fine, 2 a file cannot be read.
    """
    from .onboarding.perplexity import perplexity as measure

    content = _read_text(file)
    text, model, vocab, positions = _load(model_dir, map_dirs, dtype, threads)
    ids = _tokens(text.encode(content)[:max_tokens], vocab, model_dir)
    _note_positions(min(context, len(ids)), positions)
    try:
        with bar("reading") as progress:
            result = measure(model, ids, context, stride, progress)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(str(result))
    if html:
        from .onboarding.page_perplexity import page

        _write_page(page(result, model_dir, file), html)
