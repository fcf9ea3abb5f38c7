"""The printed forms of a formula: text, LaTeX and PyTorch source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trilift.lift import Case, Unsupported
from trilift.lift.terms.spec import Formula

from . import entries

FORMS = ("text", "latex", "torch")
COMMENT = {"text": "# ", "latex": "% ", "torch": "# "}


def printed(formula: Formula, case: Case) -> entries.Formula:
    """One formula in each form; where a form cannot say it, a comment that says so."""
    from trilift.lift.printers import all as printers

    shapes = {name: case.dims(name) for name in case.tensors}
    return {
        "text": _or_comment("text", lambda: printers.text(formula, shapes)),
        "latex": _or_comment("latex", lambda: printers.latex(formula)),
        "torch": _or_comment("torch", lambda: printers.torch(formula, shapes)),
    }


def _or_comment(form: str, write: Callable[[], str]) -> str:
    try:
        return write()
    except Unsupported as e:
        return f"{COMMENT[form]}{e}"


def joined(outputs: Mapping[str, entries.Formula], count: int) -> entries.Formula:
    """All outputs of a case in each form: the only one as it is, those of several as one equation each."""
    if count == 1:
        return next(iter(outputs.values()))
    texts = [_equation(name, forms["text"]) for name, forms in outputs.items()]
    latex, torch = ([f["latex"] for f in outputs.values()], [f["torch"] for f in outputs.values()])
    return {"text": "\n".join(texts), "latex": "\n".join(latex), "torch": "\n\n\n".join(torch)}


def _equation(name: str, text: str) -> str:
    """`out0 = softmax(x, -1)`; index notation names its output itself."""
    return text if text.startswith((f"{name}[", f"{name} =")) else f"{name} = {text}"
