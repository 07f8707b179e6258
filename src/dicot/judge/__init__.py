"""Scores: protocols, evaluation, benchmark, reports."""
