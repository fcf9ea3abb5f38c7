"""`python -m trilift`: the command line."""

from trilift.reports.cli import main

main(prog_name="trilift")
