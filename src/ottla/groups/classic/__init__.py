"""Groups of the classic protocol: members join, one of them shares out the partitions, all fetch what they got."""
