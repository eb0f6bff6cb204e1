"""Group coordinators: membership, generations, committed offsets, and the topic that keeps them."""
