"""The calls of the service: the client, the task handle, retries."""
