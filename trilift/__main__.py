"""`python -m trilift`: the command line."""

from trilift.reports.cli import main

if __name__ == "__main__":  # a child process of the fork server imports this file again
    main(prog_name="trilift")
