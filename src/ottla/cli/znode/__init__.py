"""Verbs that look into a coordination tree."""
