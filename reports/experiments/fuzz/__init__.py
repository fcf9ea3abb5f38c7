"""Random Triton kernels with host functions and PyTorch references, and semantic mutants of them: no verdict of the
prover may be one that an execution in Triton's interpreter contradicts (`make fuzz`).

grammar -> draw: a typed program as data -> mutate: wrong twins -> kernel, reference: a case file
        -> prover: its verdict; interpreter, judge: what an execution says -> shrink, page
"""
