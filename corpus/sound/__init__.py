"""Kernels without a bug: the fixed twins of corpus/broken, and controls (control_*.py) that only look wrong.

A file starts with `# sound`. It holds one case, right at every shape that the case allows: nothing may be found in it.
"""
