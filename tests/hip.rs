//! Calls of the HIP API: each with its arguments, its thread and its operations, by both sources of times.

// Every call and argument against what the program says it did; what is left out.
mod calls;
// The description of the API against the library's own exports and the compiler's layout.
mod description;
// Operations lead to exactly the call that caused them.
mod exact;
// Calls that are left without returning.
mod jumps;
// Loaded when HIP has long been in use.
mod late;
// Started and stopped while kernels and calls are under way.
mod stops;
// Another profiler takes HIP's callbacks.
mod taken;
// The two sources of times.
mod timing;
