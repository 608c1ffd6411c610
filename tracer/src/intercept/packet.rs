//! What happens to one dispatch packet: the kernel that it names is replaced, with all that the other kernel needs.
//!
//! Runs inside the interceptor of a queue: it does not wait, allocate or call the runtime, except where the kernels of the process
//! have changed since the queue's last packet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, RwLock};

use rpd_codeobject::Launch;
use rpd_preload::lock::{read, write};
use rpd_transport::log;
use rpd_transport::records::KernelId;

use super::choice::Choice;
use super::counting::{CountingUse, QueueFacts, WaitingUse};
use super::gate::{DispatchGate, DispatchPlace};
use super::kernargs::Taken;
use super::outcomes;
use super::probe::ProbeUse;
use super::runtime::LoadedCandidate;
use super::validate;
use crate::gpu::kernels;
use crate::hsa_runtime::abi::{BARRIER_BIT, Packet};

/// Place of the acquire fence's scope in a packet's header, and the scope of the whole system (HSA 1.2 §2.9.1).
const ACQUIRE: u16 = 9;
const FENCE_SYSTEM: u16 = 2;

/// What may run in the place of each kernel object of the application.
static TABLE: LazyLock<RwLock<HashMap<u64, Arc<Choice>>>> = LazyLock::new(RwLock::default);
/// Changes with the table.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// From now on these say what runs in the place of these objects, of which nothing is known yet.
pub(super) fn publish_new(choices: impl Iterator<Item = (u64, Choice)>) {
    write(&TABLE).extend(choices.map(|(object, choice)| (object, Arc::new(choice))));
    GENERATION.fetch_add(1, Ordering::Release);
}

/// From now on `choice` says what runs in the place of `object`; nothing where there is none.
pub(super) fn publish(object: u64, choice: Option<Choice>) {
    let mut table = write(&TABLE);
    let is_new = choice.is_some();
    let replaced = match choice {
        Some(choice) => table.insert(object, Arc::new(choice)),
        None => table.remove(&object),
    };
    drop(table);
    if !is_new && replaced.is_none() {
        return;
    }
    GENERATION.fetch_add(1, Ordering::Release);
    if let Some(replaced) = replaced {
        replaced.say_refusals();
    }
}

/// Kernels of which nothing is known yet will not be rewritten any more: says how many dispatches of them were not counted.
pub(super) fn say_early() {
    read(&TABLE).values().for_each(|choice| choice.say_early());
}

/// The object is gone.
pub(super) fn unload(object: u64) {
    if let Some(choice) = present(object) {
        choice.say_early();
    }
    publish(object, None);
}

/// What runs in the place of `object` now.
pub(super) fn present(object: u64) -> Option<Arc<Choice>> {
    read(&TABLE).get(&object).cloned()
}

/// Says of all choices what [`Choice::say_refusals`] does.
pub(super) fn say_refusals() {
    read(&TABLE).values().for_each(|choice| choice.say_refusals());
}

/// What one queue knows of replaced kernels, so that a packet need not take a lock.
pub(crate) struct Replacer {
    generation: u64,
    places: [(u64, Option<Arc<Choice>>); Replacer::PLACES],
}

/// What is kept of a dispatch until it has completed: of a replaced one, and of one whose workgroups may wait for each other.
pub(crate) struct InUse {
    /// None of the application's kernel.
    loaded: Option<Arc<LoadedCandidate>>,
    gate: Option<Arc<DispatchGate>>,
    probe: Option<ProbeUse>,
    counting: Option<CountingUse>,
    /// Of the application's kernel.
    _waiting: Option<WaitingUse>,
    _kernargs: Option<Taken>,
}

impl Replacer {
    const PLACES: usize = 64;

    /// Knows nothing yet.
    pub(crate) fn new() -> Replacer {
        Replacer { generation: 0, places: [const { (0, None) }; Replacer::PLACES] }
    }

    /// Replaces the kernel of the dispatch packet at `place`, where something may run in its place: the other kernel's number in records, or none
    /// where the application's own runs, and what is to be kept until the dispatch has completed. Only dispatches that are `recorded` are
    /// compared, instrumented or counted. `queue`: the packet's.
    ///
    /// # Safety
    /// The packet is the application's, who has made its arguments.
    #[inline]
    pub(crate) unsafe fn replace(
        &mut self,
        packet: &mut Packet,
        place: DispatchPlace,
        queue: QueueFacts,
        recorded: bool,
    ) -> Option<(Option<KernelId>, InUse)> {
        let choice = self.find(packet.kernel_object)?;
        let is_in_order = packet.header & BARRIER_BIT != 0;
        if let Some(uncounted) = &choice.uncounted {
            return Some((None, InUse::original(uncounted.begin(place, is_in_order, recorded)?)));
        }
        let launch = Launch {
            grid: packet.grid,
            workgroup: packet.workgroup,
            dimensions: packet.setup & 3,
            group_segment: packet.group_segment,
            private_segment: packet.private_segment,
        };
        let planned = choice.next(&launch)?;
        if planned.probe.as_ref().is_some_and(|probe| !recorded || !probe.takes()) {
            return None;
        }
        let Ok(fitted) = planned.plan.fit(&launch, planned.most_lds) else {
            let _ = planned.refused.set(launch);
            return None;
        };
        let mut kernargs = None;
        if let Some(slots) = &planned.slots {
            let mut taken = slots.take()?;
            let source = planned.plan.source_size() as usize;
            let source: &[u8] = match packet.kernarg {
                0 => &[],
                // SAFETY: the application has made the arguments of its own kernel, which has so many bytes of them, and keeps them
                // until the dispatch has completed (HSA 1.2 §2.9.6).
                address => unsafe { std::slice::from_raw_parts(address as *const u8, source) },
            };
            planned.plan.rebuild(&fitted, source, taken.bytes());
            kernargs = Some(taken);
        }
        let rebuilt = kernargs.as_ref().map(Taken::address);
        let mut probe = None;
        if let Some(instrumented) = &planned.probe {
            probe = Some(instrumented.begin(place, launch, kernargs.take()?)?);
        }
        let counting = match &planned.counting {
            Some(counted) => {
                let begun = match recorded {
                    true => counted.begin(place, &launch, queue, is_in_order),
                    false => Err(counted.enter(place, is_in_order)),
                };
                match begun {
                    Ok(counting) => Some(counting),
                    Err(waiting) => return Some((None, InUse::original(waiting?))),
                }
            }
            None => None,
        };
        let loaded = Arc::clone(&planned.loaded);
        let validation = planned.validation.as_ref().filter(|validation| recorded && validation.takes());
        let original = validation.map(|validation| (validation, *packet));
        if let Some(address) = rebuilt {
            packet.kernarg = address;
            // The device may have cached what the slot held before.
            packet.header = packet.header & !(3 << ACQUIRE) | FENCE_SYSTEM << ACQUIRE;
        }
        packet.kernel_object = counting.as_ref().map_or(planned.object, CountingUse::object);
        (packet.grid, packet.workgroup) = (fitted.grid, fitted.workgroup);
        (packet.group_segment, packet.private_segment) = (fitted.group_segment, fitted.private_segment);
        let gate = original.and_then(|(validation, original)| {
            validate::ask(validation, place, launch, (original, *packet), &loaded)
        });
        Some((
            Some(planned.kernel),
            InUse { loaded: Some(loaded), gate, probe, counting, _waiting: None, _kernargs: kernargs },
        ))
    }

    fn find(&mut self, object: u64) -> Option<&Choice> {
        let generation = GENERATION.load(Ordering::Acquire);
        if generation != self.generation {
            *self = Replacer { generation, ..Replacer::new() };
        }
        // Kernel descriptors are 64 bytes, 64-aligned.
        let place = &mut self.places[(object >> 6) as usize % Replacer::PLACES];
        if place.0 != object {
            *place = (object, present(object));
            for planned in place.1.iter().flat_map(|choice| &choice.planned) {
                planned.loaded.is_launched.store(true, Ordering::Relaxed);
            }
        }
        place.1.as_deref()
    }
}

impl InUse {
    /// Of a dispatch that runs the application's kernel.
    fn original(waiting: WaitingUse) -> InUse {
        InUse {
            _waiting: Some(waiting),
            loaded: None,
            gate: None,
            probe: None,
            counting: None,
            _kernargs: None,
        }
    }

    /// The packets that are in front of the dispatch, where it waits first.
    pub(crate) fn gate(&self) -> Option<[Packet; 2]> {
        self.waits_at().map(DispatchGate::packets)
    }

    fn waits_at(&self) -> Option<&DispatchGate> {
        self.gate.as_deref().or_else(|| self.probe.as_ref()?.gate())
    }

    /// The dispatch has completed.
    pub(crate) fn complete(&self) {
        if let Some(probe) = &self.probe {
            probe.complete();
        }
        if let Some(counting) = &self.counting {
            counting.complete();
        }
    }

    /// The dispatch of `kernel` has been the oldest of its queue for ten seconds, whatever the reason: the user hears that it is not the
    /// application's kernel, once for each candidate.
    pub(crate) fn say_that_it_is_long(&self, kernel: KernelId) {
        let Some(loaded) = &self.loaded else { return };
        if self.waits_at().is_some_and(|gate| !gate.is_open()) {
            return;
        }
        if let Some(kernel) = kernels::get(kernel).filter(|_| !loaded.said_long.swap(true, Ordering::Relaxed))
        {
            let kernel = outcomes::described(&kernel);
            log::problem(&format!(
                "{kernel} has held its queue up for 10 s: it is slow, waits for something, or never ends"
            ));
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The device may still run the kernel.
            std::mem::forget(self.loaded.clone());
        }
    }
}
