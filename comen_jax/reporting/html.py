# PLACEHOLDER
import html

from comen_jax.reporting.document import Document


def render(document: Document) -> str:
  return f"<!doctype html><title>{html.escape(document.title)}</title>\n"
