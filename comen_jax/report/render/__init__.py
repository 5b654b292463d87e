"""A report as a web page, Markdown, LaTeX and plain text."""
