"""The self-test: installs the engine a second time in its own schema, injects faults for a minute, and judges it."""
