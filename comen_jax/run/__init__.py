"""A run's folder and what is shown of it. Nothing here trains."""
