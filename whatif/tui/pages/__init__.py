"""The screens of the explorer: each shows one study from its own side."""
