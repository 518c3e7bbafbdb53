"""Commands of the explorer: plain values that change its state, their performance and their history."""
