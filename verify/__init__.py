"""Proofs for all shapes: invariants, verification conditions, contracts, findings and property tests. Nothing is here yet."""
