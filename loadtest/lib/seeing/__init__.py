"""Swim lanes: what a server waits for."""
