"""Followers fetch: what this broker follows is asked of its leaders, and appended as it comes."""
