"""`make defects`: python -m trilift.reports.experiments.defects --count N --seed S."""

from .defect_page import main

main()
