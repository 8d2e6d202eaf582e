"""Command line: `custom-ops sim ...`; `run` and `doctor` are in cli_npu.py, `onboard ...` in cli_onboard.py.

Exit codes: 0 fine, 1 findings, 2 usage or build error.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import click

from . import __version__, cli_npu, cli_onboard
from .cli_group import Group, os_error_text, use_cpu_alone

_FINDINGS, _USAGE = 1, 2


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__)
def main():
    """AscendC operators on an NPU, real or simulated."""


main.add_command(cli_npu.run)
main.add_command(cli_npu.doctor)
main.add_command(cli_onboard.onboard)


@main.group(cls=Group)
def sim():
    """Build, run and check AscendC kernels on the CPU.

    \b
    Start here:
      custom-ops sim socs                          which chips
      custom-ops sim build my_op --soc ascend950   compile op_host/ and op_kernel/ of a folder
      custom-ops sim run my_op --input x=randn:16,4096:bfloat16 --attr eps=1e-6
      custom-ops sim launch kernel.cpp my_kernel --block-dim 8 --arg x=randn:1024 --arg y=empty:1024

    \b
    Exit codes: 0 fine, 1 the kernel broke a rule (the report says where), 2 usage or build error.
    """
    use_cpu_alone()


@contextlib.contextmanager
def _reported():
    """Errors of the package as text and exit code."""
    from .errors import BuildError, KernelError

    try:
        yield
    except KernelError as error:
        click.echo(str(error), err=True)
        raise SystemExit(_FINDINGS) from None
    except OSError as error:
        click.echo(f"error: {os_error_text(error)}", err=True)
        raise SystemExit(_USAGE) from None
    except (BuildError, TypeError, ValueError) as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(_USAGE) from None


_soc = click.option("--soc", default="ascend910b", show_default=True, help="Family or SKU name; see `custom-ops sim socs`.")


def _run_options(command):
    for option in reversed([
        click.option("--trace", type=click.Path(dir_okay=False), help="Write a Chrome trace; open it at ui.perfetto.dev."),
        click.option("--adversarial", type=int, default=0, metavar="SEED",
                     help="Hold instructions back as long as the order allows: missing edges change the numbers."),
        click.option("--no-checks", is_flag=True, help="Only compute; no operand and ordering checks."),
        click.option("--ignore", multiple=True, metavar="RULE", help="Rule not to report; see `custom-ops sim rules`."),
        click.option("--threads", type=click.IntRange(1), help="Host threads that run the cores.  [default: all]"),
        click.option("--out", multiple=True, metavar="NAME=FILE.npy", help="Save an output (bfloat16 as float32)."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of random inputs."),
    ]):
        command = option(command)
    return command


@sim.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("--soc", default="ascend910b", show_default=True,
              help="Family or SKU names, joined by commas; see `custom-ops sim socs`.")
@click.option("--op", "ops", multiple=True, metavar="OPTYPE",
              help="Only this operator, as HcPreSinkhorn or hc_pre_sinkhorn; may be repeated.")
@click.option("--output", type=click.Path(file_okay=False), help="Also copy the package to this folder.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Compilers at a time.  [default: all host threads]")
def build(path, soc, ops, output, jobs):
    """Compile an op folder (op_host/, op_kernel/) into an op package.

    Prints the package's path and, per operator, the signature of its OpDef. Nothing is compiled twice: results are kept
    by content (`custom-ops sim cache`).

    \b
    Examples:
      custom-ops sim build .
      custom-ops sim build ~/ops/my_op --soc ascend950 --output opp/vendors/mine
    """
    from .sim import builder, onnx_plugin, runtime

    with _reported():
        names = soc.split(",")
        for name in names:
            runtime.find_soc(name)
        packages = [builder.build_package(path, name, ops or None, jobs) for name in names]
        if output:
            builder.export(packages, Path(output))
            if onnx_plugin.sources(path):
                _export_plugins(onnx_plugin, path, output, jobs)
        for name, package in zip(names, packages, strict=True):
            prefix = f"{name}: " if len(names) > 1 else ""
            click.echo(f"{prefix}{output or package.path}")
            for op in package.ops.values():
                click.echo(f"{prefix}  {op.signature()}")


def _export_plugins(onnx_plugin, path, output, jobs):
    if onnx_plugin.json_headers() is None:
        click.echo(f"{onnx_plugin.PLACE} is left out: it needs nlohmann/json.hpp (pip install 'custom_ops[onnx-parser]')", err=True)
    else:
        onnx_plugin.export(path, output, jobs)


@sim.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@_soc
@click.option("--op", "op_type", metavar="OPTYPE", help="Which operator, when the folder holds several.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=SPEC", help="Input tensor by its OpDef name.")
@click.option("--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="Attribute by its OpDef name; lists as [1,2].")
@_run_options
def run(path, soc, op_type, inputs, attrs, trace, adversarial, no_checks, ignore, threads, out, seed):
    """Build an op folder and call one operator of it.

    \b
    An input SPEC is one of
      file.npy            or file.npy:bfloat16 to convert it
      randn:16,4,4096     or rand, zeros, ones, empty, arange; then :dtype, float32 without
    \b
    Examples:
      custom-ops sim run . --op HcPreInvRms --input x=randn:16,4,4096:bfloat16 --attr epsilon=1e-6
      custom-ops sim run my_op --soc ascend950 --input x=x.npy --out y=y.npy --trace t.json
    """
    from . import cli_values
    from . import sim as api
    from .sim import report, runtime

    with _reported():
        targets = _targets(out, trace)
        op = api.build(path, soc, ops=[op_type] if op_type else None, checks=not no_checks, trace=bool(trace),
                          adversarial_seed=adversarial, host_threads=threads, ignore=ignore, raise_on_finding=False)
        if not isinstance(op, api.Op):
            raise ValueError(f"the folder holds {', '.join(op)}: choose one with --op")
        kinds = {a.name: a.type for a in op.info.attrs}
        arguments = cli_values.made("--input", inputs, cli_values.tensor, seed)
        arguments |= {name: cli_values.attribute(kinds.get(name, "str"), value) for name, value in cli_values.pairs(attrs)}
        cli_values.known_names(targets, [p.name for p in op.info.outputs], "output")
        result = op(**arguments)
        results = dict(zip([p.name for p in op.info.outputs], result if isinstance(result, tuple) else (result,), strict=True))
        recorded = report.Run(runtime.Options(soc))
        recorded.calls = op.calls
        _finish(recorded, results, targets, trace)


@sim.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("entry")
@_soc
@click.option("--block-dim", type=click.IntRange(1), default=1, show_default=True, help="Blocks; GetBlockNum().")
@click.option("--arg", "arguments", multiple=True, metavar="NAME=SPEC",
              help="Argument by the entry's parameter name: a tensor SPEC, or a number passed by value.")
@click.option("--output", "outputs", multiple=True, metavar="NAME", help="GM argument that starts unwritten.")
@click.option("--tiling", metavar="SPEC", help="uint32_t:16,float:1e-6 as a struct of these fields, or @file with its bytes.")
@click.option("--tiling-key", type=int, default=0, show_default=True)
@click.option("--workspace", type=click.IntRange(0), default=0, show_default=True, metavar="BYTES")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Macro for the compiler.")
@_run_options
def launch(file, entry, soc, block_dim, arguments, outputs, tiling, tiling_key, workspace, defines, trace, adversarial,
           no_checks, ignore, threads, out, seed):
    """Compile a kernel file and launch one entry, without op_host.

    \b
    Tensor SPECs are those of `custom-ops sim run`. Tensors are read and written in place.
    \b
    Examples:
      custom-ops sim launch add.cpp add --block-dim 8 --arg x=randn:4096 --arg y=empty:4096 --output y --tiling uint32_t:512
      custom-ops sim launch add.cpp add --soc ascend950 --arg x=x.npy --arg y=zeros:4096 --out y=y.npy
    """
    from . import cli_values
    from . import sim as api
    from .sim import report, runtime

    with _reported():
        values = cli_values.made("--arg", arguments, cli_values.argument, seed)
        targets = _targets(out, trace)
        cli_values.known_names(targets, values, "argument")
        call = api.launch(file, entry, block_dim, values, cli_values.tiling(tiling), soc=soc, tiling_key=tiling_key,
                          outputs=outputs, workspace=workspace, checks=not no_checks, trace=bool(trace),
                          adversarial_seed=adversarial, host_threads=threads, ignore=ignore, raise_on_finding=False,
                          defines={d.partition("=")[0]: d.partition("=")[2] or "1" for d in defines})
        recorded = report.Run(runtime.Options(soc))
        recorded.add(call)
        _finish(recorded, {n: v for n, v in values.items() if hasattr(v, "shape")}, targets, trace)


def _targets(out, trace) -> dict[str, str]:
    """Output name -> file. Their folders are made now: a run is not lost to a folder that cannot be written."""
    from . import cli_values

    targets = dict(cli_values.pairs(out))
    for option, path in [*(("--out", path) for path in targets.values()), *([("--trace", trace)] if trace else [])]:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{option} {path}: cannot make the folder {error.filename}: {error.strerror}") from None
    return targets


def _finish(recorded, results, targets, trace) -> None:
    from . import cli_values

    click.echo(recorded.summary())
    for name, value in results.items():
        click.echo(f"{name} {cli_values.describe(value)}")
    for name, path in targets.items():
        cli_values.save(results[name], path)
    if trace and recorded.calls:
        click.echo(f"trace: {recorded.save_trace(trace)} (open at ui.perfetto.dev)")
    if recorded.findings:
        raise SystemExit(_FINDINGS)


@sim.command()
@click.option("--json", "as_json", is_flag=True, help="All fields, as JSON.")
def socs(as_json):
    """List the chips: cores, UB, clock."""
    from . import sim as api
    from .sim import tables

    with _reported():
        rows = api.socs()
        if as_json:
            click.echo(json.dumps(rows, indent=1))
            return
        click.echo(tables.table("chips", ["name", "family", "arch", "AIC", "AIV", "UB B", "MHz", "also"], [
            [s["name"], s["family"], "regbase" if s["npuArch"] >= 3000 else "membase", str(s["cubeCores"]),
             str(s["vectorCores"]), f"{s['ubBytes']:,}", f"{s['clockHz'] // 10**6}", ", ".join(s["aliases"])]
            for s in rows]))


@sim.command()
def rules():
    """List the rules that kernels are checked against."""
    from . import sim as api
    from .sim import tables

    with _reported():
        click.echo(tables.table("rules", ["rule", "what the device would do"], [list(rule) for rule in api.rules().items()]))


@sim.command()
@click.argument("pattern", required=False)
@click.option("--arch", type=click.Choice(["membase", "regbase"]), help="Only APIs of this architecture.")
def apis(pattern, arch):
    """List the AscendC APIs that are modelled.

    PATTERN is a regular expression for their names, upper and lower case alike.

    \b
    Examples:
      custom-ops sim apis Reduce
      custom-ops sim apis '^MicroAPI::' --arch regbase
    """
    from . import sim as api
    from .sim import api_list, tables

    with _reported():
        try:
            rows = [a for a in api.apis(pattern) if arch is None or arch in a.arches]
        except re.error as error:
            raise click.BadParameter(f"{pattern!r} is no regular expression: {error}", param_hint="PATTERN") from None
        if not rows:
            near = api_list.nearest(pattern, api.apis())
            raise ValueError(f"no API matches {pattern!r}; "
                             + (f"nearest: {', '.join(near)}" if near else "`custom-ops sim apis` lists all"))
        click.echo(tables.table(f"{len(rows)} modelled APIs", ["name", "kind", "arch", "header"],
                                [[a.name, a.kind, ", ".join(a.arches), a.header] for a in rows]))


@sim.command()
@click.option("--clear", is_flag=True, help="Remove everything.")
def cache(clear):
    """Show or clear the kept builds.

    They are kept by content, in $CUSTOM_OPS_CACHE_DIR or the user's cache directory.
    """
    from .sim import cache as store

    with _reported():
        if clear:
            store.clear()
        click.echo(store.root())
        for kind, entries, size in store.contents():
            click.echo(f"  {kind:<10}{entries:>6} entries  {size / 2**20:8.1f} MiB")
