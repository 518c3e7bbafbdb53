"""GPU profiles: readers, characterisation, and projection to other machines (AHEAD)."""
