"""Tests of the report's tables."""
