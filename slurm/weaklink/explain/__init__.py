"""Any tool's output, or a capture of many, explained: which tool it is, what is wrong, how bad, what to do."""
