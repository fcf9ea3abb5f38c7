"""Proofs for all shapes: invariants, conditions, contracts, findings and property tests. Nothing here yet."""
