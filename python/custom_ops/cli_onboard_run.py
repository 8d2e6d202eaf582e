"""Command line: `custom-ops onboard verify`, `generate` and `perplexity`, the commands that load weights."""

from __future__ import annotations

import click

from .cli_onboard import map_dirs, printable

_FINDINGS = 1
_DTYPES = ("float32", "bfloat16", "float16")


def _dtype(name: str):
    import torch

    return getattr(torch, name)


@click.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@map_dirs
@click.option("--dtype", type=click.Choice(_DTYPES), default="float32", show_default=True, help="Of both models.")
@click.option("--batch", type=click.IntRange(1), default=2, show_default=True, help="Prompts.")
@click.option("--length", type=click.IntRange(1), default=48, show_default=True, help="Tokens of a prompt; beyond a window more is proved.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random prompts.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write the report as a page, too.")
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

    report = compare(model_dir, map_dirs=map_dirs, dtype=_dtype(dtype), batch=batch, length=length, seed=seed)
    click.echo(printable(str(report)))
    if html:
        from .onboarding.page import page, write

        write(page(report), html)
    if not report.passed:
        raise SystemExit(_FINDINGS)


def _model_options(command):
    for option in reversed([
        map_dirs,
        click.option("--dtype", type=click.Choice(_DTYPES), help="Of the model.  [default: the checkpoint's]"),
        click.option("--threads", type=click.IntRange(1), help="Of PyTorch.  [default: all]"),
    ]):
        command = option(command)
    return command


def _load(model_dir, map_dirs, dtype, threads):
    import torch

    from .onboarding.text import Text
    from .onboarding.weights import load

    if threads:
        torch.set_num_threads(threads)
    text = Text(model_dir)  # first: it is small, and it may be missing
    return text, load(model_dir, map_dirs=map_dirs, dtype=_dtype(dtype) if dtype else None)


def _load_mnn(model_dir, path, dtype, threads):
    from .onboarding.export.mnn.runtime import MnnModel
    from .onboarding.text import Text

    if dtype:
        raise click.UsageError("--dtype is of the checkpoint's weights; an export has its own")
    text, model = Text(model_dir), MnnModel(path, threads or 1)
    if len(text.tokenizer) > model.vocab:
        raise click.UsageError(f"--mnn: {path} knows {model.vocab} tokens, the tokenizer of {model_dir} has {len(text.tokenizer)}")
    return text, model


@click.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@click.option("--prompt", "-p", required=True, help="Text to go on with; - reads standard input.")
@click.option("--chat", is_flag=True, help="The prompt is a user's message, in the model's chat template.")
@click.option("--system", help="With --chat: the system message.")
@click.option("--max-tokens", "-n", type=click.IntRange(1), default=128, show_default=True)
@click.option("--temperature", type=float, default=0.0, show_default=True, help="0 takes the best token each time.")
@click.option("--top-k", type=int, default=0, help="Of the k best tokens.")
@click.option("--top-p", type=float, default=1.0, help="Of the fewest best tokens with this probability together.")
@click.option("--min-p", type=float, default=0.0, help="Of tokens with this share of the best one's probability.")
@click.option("--repetition-penalty", type=float, default=1.0)
@click.option("--seed", type=int, default=0, show_default=True)
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
    text, model = _load_mnn(model_dir, mnn, dtype, threads) if mnn else _load(model_dir, map_dirs, dtype, threads)
    prompt = click.get_text_stream("stdin").read() if prompt == "-" else prompt
    ids = text.chat(prompt, system) if chat else text.encode(prompt)
    if not ids:
        raise click.UsageError("--prompt: the tokenizer makes no token of it")
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
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page, too, with the loss along the text.")
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

    text, model = _load(model_dir, map_dirs, dtype, threads)
    with open(file, encoding="utf-8") as content:
        ids = text.encode(content.read())[:max_tokens]
    try:
        with click.progressbar(length=1000, label="reading", file=click.get_text_stream("stderr")) as bar:
            result = measure(model, ids, context, stride, lambda done, of: bar.update(done * 1000 // of - bar.pos))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(str(result))
    if html:
        from .onboarding.page import write
        from .onboarding.page_perplexity import page

        write(page(result, model_dir, file), html)
