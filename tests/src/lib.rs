//! End-to-end tests: the real libraries, the real binaries, the real ROCm runtime.
