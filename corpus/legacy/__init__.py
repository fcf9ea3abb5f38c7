"""Kernels in several launches, to be made one."""
