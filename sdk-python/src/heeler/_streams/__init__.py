"""Streams that resume after a break, and reading output."""
