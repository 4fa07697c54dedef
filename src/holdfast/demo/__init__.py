"""The demo: thousands of tasks, one worker killed in the middle, and proof that nothing was lost or accepted twice."""
