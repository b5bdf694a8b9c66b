"""Read one node: one Host interface, one parser a tool."""
