//! The real `rpd` program on real files. All in one test program, so that it is linked once.
//!
//! | file | what is tested |
//! |---|---|
//! | `harness.rs` | running rpd in a directory of its own; traces to run it on |
//! | `usage.rs` | help, exit statuses, closed pipes |
//! | `manual.rs` | manual pages, completions; `rpd --version` |
//! | `untouched.rs` | files that are no trace, and traces that must not change |
//! | `top.rs`, `info.rs` | what is printed of a trace, in every form |
//! | `instrumented.rs` | what the verbs make of dispatches of instrumented kernels |
//! | `check.rs`, `check_file.rs`, `repair.rs` | what is found in damaged traces and files, and mended |
//! | `pass.rs` | what all passes have in common |
//! | `callstack.rs`, `graph.rs`, `autograd.rs` | call stacks, graphs, PyTorch's operators |
//! | `hostile.rs` | passes over damaged, odd, locked, read-only and full files |
//! | `property.rs` | passes over generated traces: what must hold for every one |
//! | `sums.rs` | reports over generated traces: what must add up |
//! | `sound.rs` | the trace that they damage |
//! | `trim.rs`, `trim_others.rs`, `trim_failure.rs` | a part of a trace as a trace of its own; what others put into it; failures, interruptions, kills |
//! | `rows_of_texts.rs` | each text once; rows that were written as markers |
//! | `merge.rs` | traces of several ranks and hosts in one |
//! | `dataset.rs`, `extract.rs` | traces of jobs as Parquet files in folders; a rank as a trace again |
//! | `generated.rs` | traces of random numbers for it |
//! | `subclass.rs` | arguments as columns |
//! | `encodings.rs`, `long_texts.rs` | databases of UTF-16; texts as long as the file |
//! | `odd_cells.rs` | values and names of columns that are not as the format has them |
//! | `threads.rs` | processes with equal process and thread ids |
//! | `api.rs` | `rpd api`, `rpd top --by`: calls in order, rankings |
//! | `sql.rs` | `rpd sql`: what a query may do, and how its answer is written |
//! | `reports.rs` | `rpd top --by`, `copies`, `markers`, `queues`: against slow, obvious code and SQL |
//! | `idle.rs` | `rpd gaps`, `rpd overlap`: idle times, their causes, what hides behind what |
//! | `diff.rs` | `rpd diff`: changes that were put in, and those that were not |
//! | `code.rs` | `rpd code`: what kernels need |
//! | `export.rs`, `export_region.rs` | timelines for other tools; a part of a trace |
//! | `every_region.rs` | a part of a trace, for every verb and option |
//! | `every_export.rs` | all formats over hostile, damaged and empty traces |
//! | `html.rs` | a page, in a real browser |
//! | `flame.rs`, `rocprofv3.rs` | call trees for flame graphs; what AMD's tools read |
//! | `python.rs` | traces in Python, the notebook |
//! | `export_rows.rs` | rows as CSV, JSON Lines, Arrow and Parquet |
//! | `libraries.rs`, `replay.rs` | `rpd libraries`; the commands of its configurations run again |
//! | `replacements.rs`, `durations.rs` | builds of a kernel compared; logduration's log |
//! | `view.rs`, `view_found.rs`, `webdriver.rs`, `page.js` | `rpd view`: the server, the page in a browser |
//! | `view_ranks.rs` | `rpd view` of a dataset |
//! | `jobs.rs` | ready-made queries to the ranks of a job |
//! | `doctor.rs` | `rpd doctor` on made-up machines and on this one |
//! | `run.rs` | `rpd record`: streams, exit status, environment, the trace |
//! | `signal.rs` | signals and job control, mostly of `rpd record` |
//! | `explain.rs` | `rpd record`: why a trace has nothing in it |

// Tests and their harness may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

mod api;
mod autograd;
mod blocks;
mod callstack;
mod check;
mod check_file;
mod code;
#[cfg(feature = "parquet")]
mod dataset;
mod diff;
mod doctor;
mod durations;
mod encodings;
mod energy;
mod every_export;
mod every_region;
mod every_report;
mod explain;
mod export;
mod export_region;
mod export_rows;
#[cfg(feature = "parquet")]
mod extract;
mod flame;
mod fronts;
mod generated;
mod graph;
mod harness;
mod hostile;
mod html;
mod idle;
mod import;
mod info;
mod instrumented;
#[cfg(feature = "parquet")]
mod jobs;
mod kineto;
mod libraries;
mod long_texts;
mod manual;
mod marker_table;
mod merge;
mod odd_cells;
mod pass;
mod perfetto;
mod property;
mod python;
mod repair;
mod replacements;
mod replay;
mod reports;
mod rocprofv3;
mod rows_of_texts;
mod run;
mod signal;
mod sound;
mod sql;
mod subclass;
mod sums;
mod threads;
mod tools;
mod top;
mod trim;
mod trim_failure;
mod trim_others;
mod untouched;
mod usage;
mod variability;
#[cfg(feature = "view")]
mod view;
#[cfg(feature = "view")]
mod view_flow;
mod view_found;
#[cfg(feature = "view")]
mod view_panes;
#[cfg(feature = "view")]
mod view_ranks;
#[cfg(feature = "view")]
mod webdriver;
