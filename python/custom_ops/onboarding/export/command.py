"""`custom-ops onboard export`."""

from __future__ import annotations

import click

from ...cli_onboard import map_dirs, printable
from ...cli_progress import bar
from . import FORMATS, export


@click.command("export")
@click.argument("model_dir", type=click.Path(file_okay=False))
@click.option("--format", "format", required=True, type=click.Choice(list(FORMATS)), help="Of the file that is written.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="File to write.")
@click.option("--type", "type", default=None, metavar="TYPE", help="gguf: f32, f16 (default), bf16 or q8_0.")
@click.option("--no-tokenizer", is_flag=True, help="gguf: without the tokenizer, for use with token ids.")
@click.option("--pre", default=None, metavar="NAME", help="gguf: llama.cpp's name of the pre-tokenizer, where its rules are not known.")
@click.option("--exporter", default=None, type=click.Choice(["torchscript", "dynamo"]),
              help="onnx: of PyTorch; torchscript (default) is the faster one and takes less memory.")
@click.option("--fold-gates", is_flag=True, help="onnx: gates of the delta rule are computed in its nodes (gate_fold).")
@click.option("--no-function", is_flag=True, help="onnx: without the function by which onnxruntime runs linear layers.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@map_dirs
def command(model_dir, format, output, type, no_tokenizer, pre, exporter, fold_gates, no_function, force, map_dirs):
    """Write a model directory in the format of another runtime.

    The weights are streamed: the peak of memory is the largest tensor, not the model (onnx: and what the
    exporter needs). The file appears when it is complete; nothing is left of one that is not.

    \b
    Examples:
      custom-ops onboard export models/lfm2-350m --format gguf --type q8_0 -o lfm2.gguf     for llama.cpp
      custom-ops onboard export models/lfm2-350m --format mnn -o lfm2.mnn                   weights in lfm2.mnn.weight
      custom-ops onboard export models/lfm2-350m --format onnx -o lfm2.onnx                 for onnxruntime
      custom-ops onboard export models/lfm2-350m --format onnx --no-function -o lfm2.onnx   for CANN's ATC
      custom-ops onboard generate models/lfm2-350m --mnn lfm2.mnn -p "The sea is"           runs it
    \b
    Exit codes: 0 fine, 2 a file cannot be read or written, or the format cannot say what the model does.
    """
    given = {"gguf": {"--type": ("type", type), "--pre": ("pre", pre), "--no-tokenizer": ("tokenizer", False if no_tokenizer else None)},
             "mnn": {}, "onnx": {"--exporter": ("exporter", exporter), "--fold-gates": ("fold_gates", fold_gates or None),
                                 "--no-function": ("function", False if no_function else None)}}
    _refuse_others(given, format)
    options = {name: value for name, value in given[format].values() if value is not None}
    with bar("tensors") as progress:
        report = export(model_dir, format, output, map_dirs=map_dirs, overwrite=force, progress=progress, **options)
    for note in report.notes:
        click.echo(f"note: {printable(note)}", err=True)
    click.echo(f"{output}: {report.tensors} tensors, {report.nbytes / 1e6:.1f} MB")


def _refuse_others(given: dict[str, dict], format: str) -> None:
    for other, options in given.items():
        for option, (_, value) in options.items():
            if other != format and value is not None:
                raise click.UsageError(f"{option} is for --format {other}, not for {format}")
