"""Figures as tables, charts and a page."""
