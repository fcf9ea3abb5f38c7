"""`python -m trilift`: the command line."""

from trilift.reports.cli import run

if __name__ == "__main__":  # a child process of the fork server imports this file again
    run()
