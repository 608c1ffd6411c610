//! The recorder: librpd_tracer.so.
