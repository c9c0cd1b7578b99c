"""Several servers behind one port: replicas of actor and planner on a Ray cluster (docs/guides/serving.md)."""
