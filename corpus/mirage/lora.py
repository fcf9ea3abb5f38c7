"""A linear layer with a low-rank correction."""

from trilift import case


def sizes(batch: int) -> dict[str, int]:
    return {"M": batch, "K": 256, "N": 4096, "R": 16}


@case(x="f16[M,K]", w="f16[K,N]", a="f16[K,R]", b="f16[R,N]")
def lora(x, w, a, b):
    return x @ w + (x @ a) @ b
