"""The cluster as data: words, cluster file, expectations. Imports nothing of weaklink."""
