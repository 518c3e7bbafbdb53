"""The pages of the explorer: each shows a part of one state."""
