"""The worker: claims steps, runs their handlers, settles the outcomes, and does upkeep."""
