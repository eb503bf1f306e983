"""The exceptions, and their derivation from a gRPC status."""
