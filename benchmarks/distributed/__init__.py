"""Dense layers split over real processes with torch.distributed, on the processor of one machine."""
