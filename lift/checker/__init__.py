"""A second opinion: replays the proof that a certificate holds. These files share no code with the prover.

They import nothing else of trilift.

A certificate is data (`trilift prove --certificate`): the claim (formulas, contract), and
for each configuration a summary of its launches: grids, loops, accesses, integer arithmetic. From these the checker
itself derives what must be shown; the certificate holds no list of obligations. Hints in it (closed forms of loop
variables, who writes an element, contents between launches) are proved like everything else:

    loop        F(1) = next(0, init),  F(n + 1) = next(n, F(n)) for 1 <= n < trips
    bounds      0 <= offset < length of every access, under its mask
    integers    every sum and product fits its width, every divisor is not 0
    stores      value = formula[index of the element], under the mask, for all programs
    coverage    every element of an output has a program, lane and iteration that store it
    memory      no load meets a store of the same launch
    facts       follow from the contract, and do not contradict each other

Numbers are polynomials over atoms, powers of which may be negative or halves, times exp of a polynomial. Choices are
decided under the facts, or the proof goes on in both cases. Questions about integers go to cvc5 (else z3) as SMT-LIB,
with a budget in steps. The report names each obligation that is not shown; then nothing is "checked".
"""

from .claims import Failure, Report, check
from .polynomials import Data, NotChecked, Wrong
from .wording import escaped

__all__ = ["Data", "Failure", "NotChecked", "Report", "Wrong", "check", "escaped"]
