//! Questions to the HSA runtime: what the recorder may ask it, and when. No hook is here.
//!
//! - [`abi`]: its interface, as far as it is used; [`inquiry`]: what it may be asked
//! - [`agent`]: its GPUs; [`time`]: its clock; [`known`]: both, of the runtime in this process
//! - [`code`]: code objects in it; [`memory`]: its memory; [`own_queue`]: a queue of our own
//! - [`late`]: a runtime that was initialised before the recorder came

pub(crate) mod abi;
pub(crate) mod agent;
pub(crate) mod code;
pub(crate) mod inquiry;
pub(crate) mod known;
pub(crate) mod late;
pub(crate) mod memory;
pub(crate) mod own_queue;
pub(crate) mod time;
