"""What is seen of processes, cores, memory and system calls."""
