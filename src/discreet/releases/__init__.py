"""What is public: one release, all of them, the pool of their statistics, canonical documents."""
