"""The six programs of Mirage (OSDI 2025, section 8.2) in PyTorch; two of each where the paper and its benchmark scripts
differ. `sizes(batch)` of a file: the dims of its cases at a batch size of the benchmark."""
