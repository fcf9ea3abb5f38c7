"""The six programs of Trinity (ASPLOS 2026) in PyTorch: attention over M new tokens and a cache of P before them, which
the new keys and values are written into, in five forms, and a feed-forward layer. `sizes(model)` of a file: the dims of
its case for "llama" (LLaMA3-8B) and "falcon" (Falcon-7B). As in the paper scores are not scaled, and no token is
masked from those before it."""
