"""`make fuzz`: python -m trilift.reports.experiments.fuzz --count N --seed S."""

from .page import main

main()
