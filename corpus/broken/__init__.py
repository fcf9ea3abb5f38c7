"""Kernels with a bug, rebuilt from ones that were shipped; an auditor must find what their first lines say.

A file starts with `# expect: RULE at line L`, once for each finding: L is the line of that file to be named, of the
kernel or of its wrapper. Its docstring says what is wrong and where the pattern was met. It holds one case. The
file of the same name in corpus/sound has the fix.
"""
