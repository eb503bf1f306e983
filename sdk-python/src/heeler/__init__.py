"""The Python client of Heeler. The contract is in `heeler.v1`."""
