"""What people and machines read: the command line, tables, drawn errors, reports and benchmarks."""
