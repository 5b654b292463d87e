"""Figures of a report, drawn from the folders of runs."""
