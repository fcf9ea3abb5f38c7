"""Kernels in other hands: tiles of pointers that advance, negative steps, 3-D tiles, while loops, reversed scans."""
