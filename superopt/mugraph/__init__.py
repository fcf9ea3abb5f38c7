"""µGraphs: kernels that exchange tensors, their blocks and threads (Mirage, section 2).

The data between search and emission, with its JSON, its cost in a model of the GPU, and what its values need.
"""
