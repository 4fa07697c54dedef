"""The self-test: the engine installed once more in a schema of its own, made to suffer for a minute, and judged."""
