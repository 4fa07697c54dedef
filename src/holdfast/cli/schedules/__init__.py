"""`holdfast schedules`: lists schedules with their ticks, and changes them."""
