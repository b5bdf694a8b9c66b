"""What collectives should reach: conversions, known-good figures, fits, a widely read guide judged, a step model."""
