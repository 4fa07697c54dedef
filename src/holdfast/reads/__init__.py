"""What people look at: lists, one run or step with its why, the dead letter, queues, workers, the doctor."""
