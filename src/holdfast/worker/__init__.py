"""The worker: claims steps, runs their handlers, settles what became of them, and keeps house."""
