"""Makes tables, figures and a page from the records of finished runs.

It needs no model and no data, and imports no JAX. Data flows one way: folders
and records, grouping, headline, tables and plots, render.
"""
