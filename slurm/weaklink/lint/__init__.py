"""Judge settings: NCCL files and environment, and the fabric that cluster.yml describes. Pure; standard library."""
