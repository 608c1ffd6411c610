//! End-to-end tests: the real libraries, the real binaries, the real ROCm runtime, over the software GPU. All in one test
//! program, so that it is linked once.

// Tests and their harness may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

// Building what is tested, running it, reading what it left. mapping.rs is docs/mapping.md as code.
mod harness;

// The file against the device's own log: every kernel and copy, its times, its place.
mod oracle;

// That the comparison itself finds what is wrong.
mod mapping;

// Ops, calls, launches and threads lead to each other.
mod links;

// A program's output and exit status with and without the recorder, by every way of loading it.
mod transparent;

// Processes that do nothing with a GPU: no file, no thread, no word.
mod bystander;

// Calls of the HSA runtime, and what they submit.
mod hsa_apis;

// Graphs of a real HIP program, by rpd graph.
mod graphs;

// What programs and variables control: starting, stopping, flushing, file names, wrong values.
mod control;

// Calls of the HIP API, their operations, and HIP's own times of them.
mod hip;

// What NVIDIA's GPUs do, and calls of CUDA, on stand-ins for NVIDIA's libraries.
mod cuda;

// Markers through roctx and NVTX: rows, return values, other libraries that hear of them as well.
mod markers;

// `make install`, `make uninstall`, runTracer.sh and loadTracer.sh.
mod installed;

// setup.sh: what it asks for.
mod setup;

// The bill of materials of `make release`.
mod release;

// rpdTracerControl, the rocpd modules and the package, by the real python3.
mod python;

// RPDT_STACKFRAMES: who made a call, from every kind of place.
mod frames;

// Sensors of GPUs, from a directory that stands for /sys.
mod monitor;

// Joules of kernels against what the software GPU took.
mod energy;

// madengine's tools, which one recording stands in for.
mod run_tools;

// Many processes, one file; a long kernel beside many short ones.
mod many;

// RPDT_ROTATE: a recording in parts.
mod rotate;

// A trace that rpd view --live shows while it is recorded.
mod live;

// ROCr's intercept queues that abort when they are full.
mod overflow;

// Kernels of a cache that run in the place of the program's own.
mod replace;

// Results of candidates against those of the program's kernels.
mod validate;

// Instrumented kernels in the place of the program's own, and what the trace says of what they stream out.
mod probe;

// Kernels of the program that are rewritten to count their basic blocks.
mod blocks;

// HIP's functions by their names: librpd_hip.so.
mod symbols;

// API tables of versions that no runtime here has, offered as tool tables and registered tables.
mod tables;

// The library file: its symbols, its needs.
mod library;

// Recording in programs that run: the loader and rpdRemote, docs/remote.md row by row.
mod remote;

// Registers and sizes of kernels against LLVM's own reading of the code objects.
mod resources;

// `rpd code` against LLVM's tools.
mod code;

// LOGDUR_LOG_LOCATION: a line for each kernel while the program runs.
mod duration_log;

// LOGDUR_LIBRARY_FILTER: whose kernels may be replaced.
mod library_filter;

// RPDT_SAVE_CODE: the code objects that a program loads, in a directory and in the trace.
mod saved_code;

// Devices that hang, fail or run out; children; ends of all kinds.
mod misfortune;

// `rpd record`, `rpd info`, `rpd top` on what really was recorded.
mod command;

// Calls of GPU libraries: librpd_libraries.so.
mod library_calls;

// Programs of libraries that nobody here wrote.
mod libraries;
mod primitives;

// What can go wrong around a recorder inside somebody else's process: docs/hazards.md entry by entry.
mod hazards;

// scripts/circles: that what it looks for makes it fail.
mod layers;

// README.md and docs/: their commands run, their links lead somewhere.
mod documentation;
