"""Keys of the explorer: their order, their areas, and the defaults of all of them."""
