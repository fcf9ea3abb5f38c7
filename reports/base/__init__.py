"""The foundation of reports: the configuration, targets, fingerprints, progress, the version.

Nothing of lift, verify or superopt is imported here at start-up.
"""
