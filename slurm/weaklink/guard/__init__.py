"""The controller's side: collect, policy, incidents, returns."""
