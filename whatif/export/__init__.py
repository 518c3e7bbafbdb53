"""What leaves the program: plots and tables as data, and the backends that write them."""
