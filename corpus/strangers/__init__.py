"""Kernels in other hands than corpus/operators: pointer tiles that advance, negative steps, 3-D tiles, while loops, reversed scans."""
