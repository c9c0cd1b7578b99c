"""Many jobs over processes or a Ray cluster, with a journal from which an interrupted run resumes."""
