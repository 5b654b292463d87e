"""Tests of the report's formats."""
