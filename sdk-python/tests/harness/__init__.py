"""Support for the tests: a real daemon, and the conversion of requests to arguments."""
