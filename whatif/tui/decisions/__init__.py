"""Questions of the page `decide`: functions that run in a worker process, each with one small answer."""
