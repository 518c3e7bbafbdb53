"""Work of the explorer in other processes: worker processes, background jobs, and the jobs of the pages."""
