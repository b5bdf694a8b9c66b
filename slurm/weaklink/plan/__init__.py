"""Plan a fabric before it is bought: counts, cables, cost, advice."""
