"""From the records of runs to tables, figures and pages; no model, no data."""
