"""The options of a task, and their conversion to the messages of the contract."""
