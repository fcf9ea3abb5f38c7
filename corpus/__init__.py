"""Cases: kernels, launches, references. The product does not import them; tests, reports and the command line do."""
