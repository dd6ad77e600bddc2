"""What the scheduler and the agents on the nodes say to each other: messages, grants, keys and the handshake."""
