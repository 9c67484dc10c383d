"""Label expressions over columns: ``digit``, ``circle=label in {0,6,8,9}``, ``age >= 40``, ``label % 2 == 1``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sfumato.core.errors import UsageError

BOOLEAN_CLASSES = ("no", "yes")
NUMBER_KIND, CLASS_KIND = "number", "class"

_NAMED = re.compile(r"^\s*(?P<name>[\w.-]+)\s*=(?!=)\s*(?P<rest>.+)$")
_KIND = re.compile(rf"^(?P<rest>.+):(?P<kind>{NUMBER_KIND}|{CLASS_KIND})\s*$")
_MEMBER = re.compile(r"^(?P<column>.+?)\s+(?P<op>not in|in)\s*\{(?P<values>[^{}]*)\}$")
_MODULO = re.compile(r"^(?P<column>.+?)\s*%\s*(?P<modulus>\d+)\s*==\s*(?P<value>\d+)$")
_COMPARE = re.compile(r"^(?P<column>[^<>=!%]+?)\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>[^<>=!%]+)$")


@dataclass(frozen=True)
class Expression:
    """A label: a plain column (``op`` is empty) or a yes/no question about one column.

    ``kind`` says whether a plain column is a number or a class, where the user said so.
    """

    name: str
    column: str
    op: str = ""
    values: tuple[str, ...] = ()
    modulus: int = 0
    kind: str = ""

    @property
    def derived(self) -> bool:
        """Whether the label is the answer to a question (no, yes) rather than the column's own values."""
        return bool(self.op)

    def text(self) -> str:
        """Return the expression without its name, in the form that ``parse`` reads."""
        if self.op in ("in", "not in"):
            return f"{self.column} {self.op} {{{','.join(self.values)}}}"
        if self.op == "%":
            return f"{self.column} % {self.modulus} == {self.values[0]}"
        if self.op:
            return f"{self.column} {self.op} {self.values[0]}"
        return f"{self.column}:{self.kind}" if self.kind else self.column


def parse(
    spec: str, columns: tuple[str, ...], aliases: Mapping[str, str] | None = None, name: str | None = None
) -> Expression:
    """Parse a label as the user writes it.

    ``columns`` are the file's own names, which take precedence over ``aliases``, a map from further names to
    expressions. The label is called ``name``, or else what precedes a single ``=``, or else the text itself.
    """
    aliases = aliases or {}
    spec = spec.strip()
    if spec in columns:
        return Expression(name or spec, spec)
    if spec in aliases:
        return parse(aliases[spec], columns, name=name or spec)
    kind = _KIND.match(spec)
    if kind is not None:
        under = parse(kind["rest"], columns, aliases, name)
        if under.derived:
            raise UsageError(f"label '{spec}': the answer to a question is yes or no: leave out ':{kind['kind']}'.")
        return replace(under, kind=kind["kind"])
    named = _NAMED.match(spec)
    if named is not None:
        return parse(named["rest"], columns, aliases, name or named["name"])
    name = name or spec
    for pattern in (_MEMBER, _MODULO, _COMPARE):
        match = pattern.match(spec)
        if match is not None:
            return _derived(match.groupdict(), name, columns, aliases)
    return Expression(name, spec)


def _derived(found: dict[str, str], name: str, columns: tuple[str, ...], aliases: Mapping[str, str]) -> Expression:
    column = found["column"].strip()
    if column not in columns and column in aliases:
        under = parse(aliases[column], columns)
        if under.derived:
            raise UsageError(
                f"label '{name}': '{column}' is itself derived; write the expression in terms of '{under.column}'."
            )
        column = under.column
    if "modulus" in found:
        modulus = int(found["modulus"])
        if modulus < 2:
            raise UsageError(f"label '{name}': the number after % must be at least 2, got {modulus}.")
        return Expression(name, column, "%", (found["value"],), modulus)
    if "values" in found:
        values = tuple(value.strip().strip("'\"") for value in found["values"].split(",") if value.strip())
        if not values:
            raise UsageError(f"label '{name}': the set is empty; list its values, for example '{column} in {{a,b}}'.")
        return Expression(name, column, found["op"], values)
    value = found["value"].strip().strip("'\"")
    if found["op"] in ("<", "<=", ">", ">=") and not is_number(value):
        raise UsageError(f"label '{name}': '{column} {found['op']}' needs a number, got '{value}'.")
    return Expression(name, column, found["op"], (value,))


def is_number(text: str) -> bool:
    """Return whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
