"""What is public: one release, all of them, the statistics they carry, canonical documents."""
