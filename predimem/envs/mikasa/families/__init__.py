"""What PrediMem knows of MIKASA's families of tasks: their true state, subtasks, and scripted controllers."""
