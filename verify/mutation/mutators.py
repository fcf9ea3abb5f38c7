"""The kinds of mutants: a row says which operations it changes, and how."""

from __future__ import annotations

from dataclasses import dataclass

from trilift.lift.ttir.ir import Op

from . import effect_mutators as E
from . import value_mutators as S
from .editor import Editor


@dataclass(frozen=True, slots=True)
class Kind:
    """`ops`: the operations it is for, () for any; those in combiners of reductions only if `combiner`."""

    name: str
    ops: tuple[str, ...]
    slip: S.Slip
    combiner: bool = False

    def variants(self, op: Op, editor: Editor) -> list[S.Variant]:
        """The changes of this kind that the operation admits."""
        around = editor.around(op)
        inside = around is not None and around.name in ("tt.reduce", "tt.scan")
        if (self.ops and op.name not in self.ops) or inside > self.combiner:
            return []
        return list(self.slip(op, editor))


def full(*names: str) -> tuple[str, ...]:
    """addf is arith.addf."""
    return tuple(n if "." in n else S.ARITH + n for n in names)


BOUNDARY = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}
REVERSED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
REPLACED = {
    "addf": ("subf", "mulf"), "subf": ("addf",), "mulf": ("addf", "divf"), "divf": ("mulf",), "addi": ("subi",),
    "subi": ("addi",), "muli": ("addi",), "divsi": ("remsi",), "remsi": ("divsi",), "divui": ("remui",),
    "remui": ("divui",), "maxnumf": ("minnumf", "addf"), "minnumf": ("maxnumf",), "maximumf": ("minimumf",),
    "minimumf": ("maximumf",), "maxsi": ("minsi",), "minsi": ("maxsi",), "maxui": ("minui",), "minui": ("maxui",),
    "andi": ("ori",), "ori": ("andi",), "xori": ("andi", "ori"), "shrsi": ("shrui",), "shrui": ("shrsi",),
    "math.exp": ("math.exp2",), "math.exp2": ("math.exp",), "math.log": ("math.log2",), "math.log2": ("math.log",),
    "math.sqrt": ("math.rsqrt",), "math.rsqrt": ("math.sqrt",), "math.sin": ("math.cos",), "math.cos": ("math.sin",),
    "math.floor": ("math.ceil",), "math.ceil": ("math.floor",), "math.tanh": ("math.erf",), "math.erf": ("math.tanh",),
    "negf": ("math.absf",), "math.absf": ("negf",),
}  # fmt: skip
COMBINERS = {
    "addf": ("maxnumf",), "addi": ("maxsi",), "mulf": ("addf",), "muli": ("addi",), "maxnumf": ("minnumf", "addf"),
    "minnumf": ("maxnumf",), "maximumf": ("minimumf",), "minimumf": ("maximumf",), "maxsi": ("minsi", "addi"),
    "minsi": ("maxsi",), "andi": ("ori",), "ori": ("andi",), "xori": ("ori",),
}  # fmt: skip
SWAPPED = {
    **dict.fromkeys(
        full("subi", "subf", "divf", "divsi", "remsi", "divui", "remui", "remf", "tt.precise_divf"), (0, 1)
    ),
    **dict.fromkeys(("tt.join", "tt.cat", "tt.dot", "math.copysign"), (0, 1)),
    **dict.fromkeys(("arith.select", "math.fma"), (1, 2)),
}
CASTS = {
    "arith.extsi": "arith.extui", "arith.extui": "arith.extsi", "arith.sitofp": "arith.uitofp",
    "arith.uitofp": "arith.sitofp", "arith.fptosi": "arith.fptoui", "arith.fptoui": "arith.fptosi",
}  # fmt: skip
ATOMICS = {
    "add": ("max", "exch"), "fadd": ("exch",), "max": ("min",), "min": ("max",), "umax": ("umin",), "umin": ("umax",),
    "and": ("or",), "or": ("and",), "xor": ("or",), "exch": ("add",),
}  # fmt: skip

LOADS, WRITES, LOOPS = ("tt.load",), ("tt.store", "tt.atomic_rmw"), ("scf.for",)
COMPARES, IDS, FOLDS = full("cmpi", "cmpf"), ("tt.get_program_id", "tt.get_num_programs"), ("tt.reduce", "tt.scan")
ELEMENTWISE = tuple(dict.fromkeys((*full(*REPLACED), *SWAPPED, "math.log1p", "math.expm1", "tt.extern_elementwise")))

KINDS = (
    Kind("mask dropped", (*LOADS, *WRITES), E.mask_dropped),
    Kind("other changed", LOADS, E.other_changed),
    Kind("boundary moved", COMPARES, S.comparison_changed(BOUNDARY)),
    Kind("comparison reversed", COMPARES, S.comparison_changed(REVERSED), combiner=True),
    Kind("comparison negated", COMPARES, S.comparison_changed(NEGATED)),
    Kind("constant changed", (), S.constant_changed),
    Kind("size off by one", (), S.size_off_by_one),
    Kind("range shifted", ("tt.make_range",), S.range_shifted),
    Kind("operands swapped", tuple(SWAPPED), S.operands_swapped(SWAPPED)),
    Kind("operation replaced", full(*REPLACED), S.operation_replaced(REPLACED)),
    Kind("combiner replaced", full(*COMBINERS), S.operation_replaced(COMBINERS, combiner=True), combiner=True),
    Kind("operation dropped", ELEMENTWISE, S.operation_dropped(rescale=False)),
    Kind("rescale dropped", full("mulf"), S.operation_dropped(rescale=True)),
    Kind("argument exchanged", (), S.parameter_exchanged(pointers=False)),
    Kind("pointer exchanged", (), S.parameter_exchanged(pointers=True)),
    Kind("program axis", IDS, S.program_axis),
    Kind("program id off by one", (), S.program_off_by_one),
    Kind("reduced axis", FOLDS, S.reduced_axis),
    Kind("scan reversed", ("tt.scan",), S.scan_reversed),
    Kind("transposed", ("tt.dot", "tt.trans"), S.transposed),
    Kind("accumulator lost", ("tt.dot",), S.accumulator_lost),
    Kind("extension dropped", full("muli", "addi"), S.extension_dropped),
    Kind("sign of a cast", tuple(CASTS), S.sign_of_cast(CASTS)),
    Kind("store dropped", WRITES, E.store_dropped),
    Kind("stored twice", WRITES, E.stored_twice),
    Kind("stored next door", WRITES, E.stored_next_door),
    Kind("atomic to store", ("tt.atomic_rmw",), E.atomic_to_store),
    Kind("atomic replaced", ("tt.atomic_rmw",), E.atomic_replaced(ATOMICS)),
    Kind("loop short by a block", LOOPS, E.bound_moved(1, "arith.subi", "one block less")),
    Kind("loop long by a block", LOOPS, E.bound_moved(1, "arith.addi", "one block more")),
    Kind("loop starts late", LOOPS, E.bound_moved(0, "arith.addi", "the first block left out")),
    Kind("loop starts early", LOOPS, E.bound_moved(0, "arith.subi", "a block before the first")),
    Kind("step doubled", LOOPS, E.step_doubled),
    Kind("initial value", LOOPS, E.initial_value),
    Kind("not carried", ("scf.yield",), E.not_carried),
    Kind("carried crosswise", ("scf.yield",), E.carried_crosswise),
    Kind("condition changed", ("scf.if", "scf.condition", "cf.cond_br"), E.condition_changed),
)
