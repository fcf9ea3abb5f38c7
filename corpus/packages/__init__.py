"""Cases over the wrappers of packages from PyPI."""
