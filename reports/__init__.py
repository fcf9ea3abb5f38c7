"""Output for people and machines: the command line, tables, drawn errors, reports and benchmarks."""
