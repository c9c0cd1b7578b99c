"""Does the robot still use the one earlier session that matters, after many that do not?"""
