"""Reports on a terminal or as plain text."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cli_onboard import printable
from . import tiers
from .analyze import OK, WRONG, Analysis

_FINDINGS = 5  # told per check; --json has all
_WIDTH = 130   # where the output is no terminal
_STYLE = {OK: "green", WRONG: "bold red"}


def console() -> Console:
    plain = Console()
    return plain if plain.is_terminal else Console(width=_WIDTH)


def analysis(found: Analysis) -> None:
    """Prints an Analysis. Texts go through Text: nothing in a file's name is taken for markup."""
    out = console()
    _title(out, found)
    for table in [_questions(found)] * bool(found.answers) + [_tests(found), _checks(found)]:
        out.print()
        out.print(table)
    out.print()
    for check in found.checks:
        if check.findings and check.state != OK:
            _print(out, f"{check.name}:", "bold")
            for finding in check.findings[:_FINDINGS]:
                _print(out, f"  {finding}")
            if len(check.findings) > _FINDINGS:
                _print(out, f"  and {len(check.findings) - _FINDINGS} more (--json has all)")
            if check.advice:
                _print(out, f"  -> {check.advice}")
    if found.proposal is not None:
        _proposal(out, found)
    _print(out, "ready: onboard verify can run it" if found.ready else "not ready", "bold green" if found.ready else "bold red")


def _print(out: Console, text: str, style: str = "") -> None:
    out.print(Text(printable(text), style))


def _title(out: Console, found: Analysis) -> None:
    size = f", {_amount(found.parameters)} parameters, {_bytes(found.nbytes)}" if found.parameters else ""
    _print(out, f"{found.folder}: {found.model_type or 'no model_type'}{size}", "bold")
    told = ", ".join(f"{tier} ({tiers.TIERS[tier]})" for tier in found.tiers)
    _print(out, f"tier {told}; order of work: {' -> '.join(found.steps)}")
    if found.mapped:
        replaced = f", which replaces {found.family.replaces.name}" if found.family.replaces else ""
        remote = "; transformers has no class of its own for it" if found.family.remote_code else ""
        _print(out, f"map {found.family.file.name}{replaced}{remote}")
    else:
        _print(out, found.unknown, "red")
        if found.family:
            _print(out, "what follows is read with the proposed map")
    if found.family and found.family.unsupported:
        _print(out, f"LlmModel does not have: {found.family.unsupported}", "bold red")


def _amount(count: int) -> str:
    return next((f"{count / size:.3g} {name}" for size, name in ((10**12, "T"), (10**9, "B"), (10**6, "M")) if count >= size), f"{count:,}")


def _bytes(count: int) -> str:
    return next((f"{count / 2**power:.3g} {name}" for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
                 if count >= 2**power),
                f"{count} B")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _questions(found: Analysis) -> Table:
    table = _table("", "question", "answer")
    for answer in found.answers:
        said = Text(printable("\n".join(answer.answer)))
        table.add_row(str(answer.number), Text(answer.question), said.append(f"  [{printable(answer.evidence)}]", "dim"))
    return table


def _tests(found: Analysis) -> Table:
    table = _table("test", "tier", "", "because")
    for test in found.tests:
        table.add_row(Text(f"{test.number} {test.question}"), str(test.tier), "yes" if test.hit else "no",
                      Text(printable(test.evidence), "dim"))
    return table


def _checks(found: Analysis) -> Table:
    table = _table("check", "", "found")
    for check in found.checks:
        table.add_row(Text(check.name), Text(check.state, _STYLE.get(check.state, "yellow")), Text(printable(check.found)))
    return table


def _proposal(out: Console, found: Analysis) -> None:
    missing, over = len(found.proposal.missing), len(found.proposal.unused)
    rest = f"it leaves {missing} entries missing and {over} tensors over" if missing or over else "nothing is missing with it"
    _print(out, f"proposed map, {rest} (--save-map FILE writes it):", "bold")
    for line in found.proposal.text.splitlines():
        _print(out, f"  {line}", "cyan")
