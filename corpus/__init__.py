"""Cases: kernels with their launches and references. Nothing in the product imports this; tests, reports and the command line load it."""
