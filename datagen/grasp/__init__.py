"""Where to grasp a thing that cameras have seen: point clouds in, scored grasps out."""
