"""Runs the conformance cases through the methods of the client."""
