"""Random Triton kernels with host functions and PyTorch references, and semantic mutants of them: no verdict of the
prover may be one that an execution in Triton's interpreter contradicts (`make fuzz`).

grammar -> random_programs: a typed program as data -> mutate: wrong twins -> kernel, reference: a case file
        -> prover: its verdict; interpreter_server, judge: what an execution says -> shrink, page
"""
