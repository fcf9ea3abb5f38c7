"""The commands of the command line, one module each.

In: targets and options. Out: what is printed, and the exit code.
"""
