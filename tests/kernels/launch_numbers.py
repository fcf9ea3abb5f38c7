"""Numbers in objects and classes of a module, where kernels read them."""

from dataclasses import dataclass


@dataclass
class Numbers:
    factor: float


class Base:
    FACTOR = 2.0


class Derived(Base):
    pass


OBJECT = Numbers(2.0)
