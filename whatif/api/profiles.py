"""GPU profiles: their characterisation, and their projection to other machines."""
