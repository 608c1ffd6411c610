//! The source of calls of the HIP API, and of commands as HIP itself times them.
//!
//! - `open`: HIP is found in the process; `state`: how it is observed since; `config`, `filter`: what the user wants of it; `library`: its
//!   library; `description`: what its functions are
//! - `activity`, `tracer_callback`: HIP's callbacks, up to 5.2 and from 5.3 on; `displaced`: another profiler takes them; `command`:
//!   commands as HIP times them
//! - `table`: HIP's dispatch table; `symbols`, `export`: its functions' symbols; `wrapper`: functions in the place of HIP's own
//! - `call`: a call, from its beginning to its record; `arguments`: what is kept of it; `launch`: as the columns of a row
//! - `kernel`, `device`, `pointer`: which kernel, which GPU, and whose memory, an argument means
//! - `functions`: what records name by number

mod activity;
mod arguments;
mod call;
mod command;
mod config;
mod description;
mod device;
mod displaced;
pub mod export;
mod filter;
mod functions;
mod kernel;
mod launch;
mod library;
mod open;
mod pointer;
mod state;
mod symbols;
mod table;
mod tracer_callback;
mod wrapper;

use rpd_preload::threads;
use rpd_transport::env::Env;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records::Call;
use rpd_transport::source::{Answer, CallText, Detail, Loading, Offer, Source, Watch};

use crate::hsa_runtime::late;
use arguments::Arguments;
use description::RowKind;

/// The source of HIP's calls, and of commands as HIP times them.
pub(crate) struct Hip;

impl Source for Hip {
    fn name(&self) -> &'static str {
        "hip"
    }

    fn number(&self) -> u8 {
        functions::SOURCE
    }

    fn configure(&self, env: &mut Env<'_>) {
        config::configure(env);
    }

    /// Where HIP has been used before, nothing else will tell: the HSA runtime offers its tables only once. A runtime that is told to load
    /// this library does so while it is initialised, and offers its tables next.
    fn loaded(&self, at: Loading) {
        open::set_loaded_by_remote(at.by_remote);
        // Libraries that came with the program have not been initialised yet when this one is, and a program that has used HIP has
        // threads.
        if !at.by_runtime && library::came_first() && threads::others() {
            open::notice();
        }
    }

    fn offered(&self, offer: &Offer<'_>) -> Answer {
        let (b"hip", [table]) = (offer.name, offer.tables) else { return Answer::NotMine };
        if recorder::get().is_some() {
            // SAFETY: HIP offers its own table (hip_api_trace.cpp).
            unsafe { table::patch(offer.instance, *table) };
        }
        Answer::Taken
    }

    fn noticed(&self) {
        open::notice();
    }

    fn started(&self, recorder: &'static Recorder) {
        open::notice();
        if !state::is_complete() && library::has_hsa() && late::is_there() {
            open::complain_of_hsa_alone();
        }
        activity::follow(recorder);
    }

    fn visit(&self, recorder: &'static Recorder) {
        activity::follow(recorder);
    }

    fn is_used(&self) -> bool {
        state::current().is_observed()
    }

    fn causes_operations(&self) -> bool {
        state::current().name().is_some()
    }

    fn function(&self, index: u16) -> &'static str {
        match index {
            functions::DISPATCH => "hsaDispatch",
            functions::COMMAND => "hipCommand",
            place => description::get().apis.get(usize::from(place)).map_or("", |api| api.name),
        }
    }

    fn describe(&self, call: &Call, arguments: &[u8]) -> Option<CallText> {
        let api = description::get().apis.get(usize::from(call.function))?;
        let detail = match api.row {
            // What was submitted tells it better.
            RowKind::Kernel if call.submitted == 0 => Detail::Launch(launch::launch(api, arguments)),
            RowKind::Copy { .. } => launch::transfer(api, arguments).map_or(Detail::Nothing, Detail::Copy),
            _ => Detail::Nothing,
        };
        let text = Arguments::new(api, arguments).text();
        Some(CallText { name: api.name, arguments: text, launches: api.is_launch(), detail })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        if let Some(name) = state::current().name() {
            add("hip_door", name);
        }
    }

    fn watch(&self) -> Option<Watch> {
        let mut displacement = displaced::Displacement::default();
        Some(Box::new(move |dispatch| {
            if displacement.after(dispatch) {
                displaced::noticed();
            }
        }))
    }
}
