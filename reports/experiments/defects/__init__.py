"""Defects planted in the prover itself: which of them do the tests notice (`make defects`)?

sites: every place where a rule, a side condition or a guard can be broken
        -> drawn: a seeded choice over the trusted code -> switch: modules that hold all of them, each behind a switch
        -> suite_server: the tests that run the broken line, in a fork of a process that has imported everything
        -> defect_page, survivors: why those that no test notices need not be noticed
"""
