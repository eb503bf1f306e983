"""Attaching to a task, and running a command in the foreground."""
