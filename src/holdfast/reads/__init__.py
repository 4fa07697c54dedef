"""Reads for people: lists, one run or step with its explanation, dead letters, queues, workers, the doctor."""
