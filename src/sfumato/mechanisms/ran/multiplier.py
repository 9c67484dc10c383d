"""The Lagrange multiplier λ of Eq. 4 in two units.

The paper's Eq. 4 sums the squared error over a record's D numbers, ``RAN.lam`` weighs their mean:

    O_a = λ·H − (1 − λ)·|x − D(E(x))|²          the paper's λ
    O_a = l·H − (1 − l)·|x − D(E(x))|² / D      ours, l

Both ask the same of the encoder where the weights have one ratio, λ/(1 − λ) = D·l/(1 − l).
"""

from __future__ import annotations


def papers_lambda(lam: float, numbers: int) -> float:
    """The paper's λ that asks the same as our ``lam``, for records of so many numbers."""
    return numbers * lam / (numbers * lam + 1.0 - lam)


def our_lambda(papers: float, numbers: int) -> float:
    """Our ``lam`` that asks the same as the paper's λ, for records of so many numbers."""
    return papers / (papers + numbers * (1.0 - papers))
