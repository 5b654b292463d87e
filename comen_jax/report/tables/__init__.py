"""Tables of a report, built from groups of runs."""
