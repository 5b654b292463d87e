"""Command: many runs, which the tables need."""
