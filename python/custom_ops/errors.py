"""Exceptions of the package. Both are RuntimeErrors, so code that knows nothing of them still catches them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass


class KernelError(RuntimeError):
    """A simulated kernel broke a rule of the hardware, or its host code refused the call.

    str(error) is the report as text, every finding with the accesses behind it and the shortest repair.

    Attributes (of the first finding):
        op, soc:              "HcPreSinkhorn", "Ascend910B3"
        core, pipe:           block index and "MTE2" | "V" | "MTE3" | ...; None and "" when no core ran
        instruction, operand: API name and its parameter, e.g. "DataCopyPad", "dst"
        file, line:           where the kernel's source called it
        rule:                 the broken rule as `custom-ops sim rules` names it; "host" when op_host refused the call
        message:              one sentence with the numbers
        findings:             all of them, as dicts
        report:               the OpCall of the launch, None when there was none
    """

    def __init__(self, text: str, *, op: str = "", soc: str = "", core: int | None = None, pipe: str = "",
                 instruction: str = "", operand: str = "", file: str = "", line: int = 0, rule: str = "",
                 message: str = "", findings: Sequence[dict] = (), report=None):
        super().__init__(text)
        self.op, self.soc, self.core, self.pipe = op, soc, core, pipe
        self.instruction, self.operand = instruction, operand
        self.file, self.line, self.rule = file, line, rule
        self.message = message or text
        self.findings = list(findings)
        self.report = report

    def __reduce__(self):
        return functools.partial(KernelError, **self.__dict__), self.args


@dataclass(frozen=True)
class CompileError:
    """One error of the compiler."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message


class BuildError(RuntimeError):
    """Sources could not be turned into an op package.

    Attributes:
        errors:  the compiler's errors as CompileError(file, line, message), first one first
        unmodelled: names the sources use that the simulator does not have
        output:  everything the compiler printed
        command: the compiler's command line
    """

    def __init__(self, text: str, *, errors: Sequence[CompileError] = (), unmodelled: Sequence[str] = (),
                 output: str = "", command: Sequence[str] = ()):
        super().__init__(text)
        self.errors, self.unmodelled = list(errors), list(unmodelled)
        self.output, self.command = output, list(command)

    def __reduce__(self):
        return functools.partial(BuildError, **self.__dict__), self.args
