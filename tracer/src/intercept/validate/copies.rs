//! The buffers of a dispatch, copied twice: for the application's kernel and for the candidate's.

use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_settings::measure::Measure;
use rpd_transport::source::ValidationText;

use super::ValidationRequest;
use super::compare::ComparedBuffer;
use crate::hsa_runtime::abi::{Agent, BARRIER_BIT, Packet, Signal, packet_type};
use crate::hsa_runtime::memory::Allocation;
use crate::hsa_runtime::own_queue::OwnQueue;
use crate::intercept::runtime::Runtime;

/// Bytes that are brought to the host at a time; a multiple of every element.
const CHUNK: usize = 4 << 20;
/// Bytes of arguments that a kernel may have.
const MOST_ARGUMENTS: usize = 1 << 16;
/// What is searched for addresses at the start of each buffer, bytes.
const SEARCHED: usize = 64 << 10;
/// How long a copy may take, and a kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at a signal.
const GLANCE: Duration = Duration::from_micros(50);
/// Fences of the whole system, acquired and released (HSA 1.2 §2.9.1).
const FENCES: u16 = 2 << 9 | 2 << 11;

/// Host memory: three pieces of buffers, and the arguments of two kernels.
struct HostMemory {
    memory: NonNull<u8>,
    /// The agent whose memory it is.
    owner: Agent,
}

/// Copies buffers and runs kernels on the copies.
pub(super) struct Copier {
    runtime: Runtime,
    most_bytes: u64,
    /// Why it is to end now, if it is.
    cut_off: fn() -> Option<&'static str>,
    queues: HashMap<u64, OwnQueue>,
    host: Option<HostMemory>,
    signal: Option<Signal>,
}

/// An allocation and its two copies. What lies one behind the other does so in the copies too: the end of one may be meant by the
/// address at which the next begins.
struct CopiedAllocation {
    allocation: Allocation,
    copies: [NonNull<u8>; 2],
}

/// An address among the arguments.
struct Pointer {
    argument: u32,
    offset: u32,
    address: u64,
    /// The allocation it is in.
    base: u64,
}

/// Which of the two copies a kernel has.
const ORIGINAL: usize = 0;
const CANDIDATE: usize = 1;

impl Copier {
    /// Has nothing of the runtime yet.
    pub(super) fn new(runtime: Runtime, most_bytes: u64, cut_off: fn() -> Option<&'static str>) -> Copier {
        Copier { runtime, most_bytes, cut_off, queues: HashMap::new(), host: None, signal: None }
    }

    /// Runs both kernels on copies of the dispatch's buffers, and says what they left: one row for each argument.
    ///
    /// # Errors
    /// Why that cannot be done.
    pub(super) fn compare(
        &mut self,
        measure: Measure,
        request: &ValidationRequest,
    ) -> Result<Vec<ValidationText>, String> {
        let arguments = arguments(request)?;
        let pointers = self.pointers(request, &arguments)?;
        let allocations: BTreeMap<u64, Allocation> =
            pointers.iter().map(|(pointer, allocation)| (pointer.base, *allocation)).collect();
        let allocations: Vec<Allocation> = allocations.into_values().collect();
        let bytes = allocations.iter().map(|allocation| allocation.size).sum::<u64>().saturating_mul(2);
        if bytes > self.most_bytes {
            return Err(format!(
                "the copies of its buffers have {} MiB, RPDT_VALIDATE_MB allows {}",
                bytes >> 20,
                self.most_bytes >> 20
            ));
        }
        self.prepare()?;
        for allocation in &allocations {
            self.search(allocation)?;
        }
        let agent = request.validation.agent;
        let (mut memory, mut copied) = (Vec::new(), Vec::new());
        let compared = allocations
            .chunk_by(|one, next| one.base + one.size == next.base)
            .try_for_each(|row| {
                let size = row.iter().map(|allocation| allocation.size).sum();
                let copies = [
                    self.device_memory(agent, size, &mut memory)?,
                    self.device_memory(agent, size, &mut memory)?,
                ];
                row.iter().try_for_each(|allocation| {
                    let place = (allocation.base - row[0].base) as usize;
                    // SAFETY: inside the memory, which has room for the whole row.
                    let copies = copies.map(|memory| unsafe { memory.add(place) });
                    copied.push(CopiedAllocation { allocation: *allocation, copies });
                    self.fill(agent, allocation, copies)
                })
            })
            .and_then(|()| self.run(request, &arguments, &pointers, &copied))
            .and_then(|()| self.found((measure, agent), &pointers, &copied));
        // A copy that did not end may still be written to.
        if self.signal.is_some() {
            for memory in memory {
                // SAFETY: memory of `of_device`; the copies have ended, and so have the kernels or their queue.
                unsafe { self.runtime.memory.free(memory) };
            }
        }
        compared
    }

    /// The addresses among the arguments, with what they are in.
    fn pointers(
        &self,
        request: &ValidationRequest,
        arguments: &[u8],
    ) -> Result<Vec<(Pointer, Allocation)>, String> {
        let mut pointers = Vec::new();
        for place in request.validation.places.as_deref().unwrap_or_default() {
            let Some(address) = word(arguments, place.offset as usize) else { continue };
            match self.meant(address) {
                Some(allocation) => {
                    let (argument, offset, base) = (place.argument, place.offset, allocation.base);
                    pointers.push((Pointer { argument, offset, address, base }, allocation));
                }
                None if place.is_pointer && address != 0 => {
                    return Err(format!(
                        "argument {} points to memory that the runtime does not know",
                        place.argument
                    ));
                }
                None => {}
            }
        }
        Ok(pointers)
    }

    fn allocation(&self, address: u64) -> Option<Allocation> {
        // Numbers that can be no address need not be looked up.
        let is_possible = (1 << 16..1 << 48).contains(&address) && (self.runtime.lives)();
        // SAFETY: the runtime lives, and waits for this thread before it goes.
        is_possible.then(|| unsafe { self.runtime.memory.allocation(address) })?
    }

    /// The allocation that an address is in or, where none begins there, the one that ends there: the runtime also knows addresses of
    /// memory that nobody has yet.
    fn meant(&self, address: u64) -> Option<Allocation> {
        let here = self.allocation(address);
        if here.is_some_and(|here| here.base == address) {
            return here;
        }
        let before = self.allocation(address.checked_sub(1)?);
        before.filter(|before| before.base + before.size == address).or(here)
    }

    /// Gets what all comparisons use.
    fn prepare(&mut self) -> Result<(), String> {
        if !(self.runtime.lives)() {
            return Err("the runtime is gone".into());
        }
        if self.signal.is_none() {
            // SAFETY: the runtime lives, and waits for this thread before it goes.
            self.signal = Some(unsafe { self.runtime.own_queues.signal() }.ok_or("there is no signal")?);
        }
        if self.host.is_none() {
            let agents: Vec<Agent> = self.runtime.gpus.all().iter().map(|gpu| gpu.agent).collect();
            // SAFETY: as above.
            let memory = unsafe { self.runtime.memory.kernargs(&agents, 3 * CHUNK + 2 * MOST_ARGUMENTS) };
            let memory = memory.ok_or("there is no host memory")?;
            let owner = self.allocation(memory.as_ptr() as u64).ok_or("there is no host memory")?.owner;
            self.host = Some(HostMemory { memory, owner });
        }
        Ok(())
    }

    /// Refuses a buffer that has addresses in it: a kernel on the copies would follow them to what is no copy.
    fn search(&mut self, allocation: &Allocation) -> Result<(), String> {
        let size = (allocation.size as usize).min(SEARCHED);
        self.bring(0, self.readable(allocation, allocation.base), size)?;
        let has_address = (0..size)
            .step_by(8)
            .any(|at| word(self.brought(0, size), at).is_some_and(|value| self.allocation(value).is_some()));
        match has_address {
            true => {
                Err("its buffers hold addresses, which kernels on copies would follow to what is no copy"
                    .into())
            }
            false => Ok(()),
        }
    }

    /// So many bytes of the GPU's memory, which `all` has too.
    fn device_memory(
        &self,
        agent: Agent,
        size: u64,
        all: &mut Vec<NonNull<u8>>,
    ) -> Result<NonNull<u8>, String> {
        // SAFETY: the runtime lives, and waits for this thread before it goes.
        let memory = unsafe { self.runtime.memory.of_device(agent, size as usize) };
        let memory = memory.ok_or_else(|| format!("the GPU has no memory for copies of {size} bytes"))?;
        all.push(memory);
        Ok(memory)
    }

    /// Copies an allocation once, and the copy again: others may write to the allocation meanwhile, and the two copies are to be equal.
    fn fill(
        &mut self,
        agent: Agent,
        allocation: &Allocation,
        copies: [NonNull<u8>; 2],
    ) -> Result<(), String> {
        let [first, second] = copies.map(|memory| (memory.as_ptr() as u64, agent));
        self.copy(first, (allocation.base, allocation.owner), allocation.size as usize)?;
        self.copy(second, first, allocation.size as usize)
    }

    /// An address in an allocation, and whose memory it is, for a copy to the host: the processor itself makes one of its own memory.
    fn readable(&self, allocation: &Allocation, address: u64) -> (u64, Agent) {
        let is_hosts = allocation.host_base != 0 && self.runtime.gpus.of(allocation.owner).is_none();
        let base = if is_hosts { allocation.host_base } else { allocation.base };
        (base + (address - allocation.base), allocation.owner)
    }

    /// Runs the candidate's kernel on its copies, and the application's on the others.
    fn run(
        &mut self,
        request: &ValidationRequest,
        arguments: &[u8],
        pointers: &[(Pointer, Allocation)],
        copied: &[CopiedAllocation],
    ) -> Result<(), String> {
        let plan = &request.validation.plan;
        for whose in [CANDIDATE, ORIGINAL] {
            let mut own = arguments.to_vec();
            for (pointer, _) in pointers {
                let copied = copied.iter().find(|copied| copied.allocation.base == pointer.base);
                let Some(copied) = copied else { continue };
                let address = copied.copies[whose].as_ptr() as u64 + (pointer.address - pointer.base);
                let place = pointer.offset as usize;
                own[place..place + 8].copy_from_slice(&address.to_le_bytes());
            }
            let place = self.arguments(whose)?;
            // SAFETY: host memory of this size that is this thread's; no kernel runs that reads it.
            let room = unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), MOST_ARGUMENTS) };
            match (whose, plan.rebuilt_size()) {
                (CANDIDATE, Some(size)) => {
                    let room = room.get_mut(..size as usize).ok_or("it has too many arguments")?;
                    plan.rebuild(&request.launch, &own, room);
                }
                _ => room[..own.len()].copy_from_slice(&own),
            }
            let packet = [request.original, request.candidate][whose];
            self.dispatch(request.validation.agent, packet, place).map_err(|why| {
                if (self.cut_off)().is_none() {
                    request.validation.give_up();
                }
                match whose {
                    CANDIDATE => why,
                    _ => format!("of the program's kernel {why}"),
                }
            })?;
        }
        Ok(())
    }

    /// Where the arguments of one of the kernels are.
    fn arguments(&self, whose: usize) -> Result<NonNull<u8>, String> {
        let host = self.host.as_ref().ok_or("there is no host memory")?;
        // SAFETY: inside the memory, which has two such places behind the pieces.
        Ok(unsafe { host.memory.add(3 * CHUNK + whose * MOST_ARGUMENTS) })
    }

    /// Runs one kernel and waits for its end.
    fn dispatch(&mut self, agent: Agent, packet: Packet, arguments: NonNull<u8>) -> Result<(), String> {
        let signal = self.armed()?;
        let queue = match self.queues.remove(&agent.0) {
            Some(queue) => queue,
            // SAFETY: the runtime lives, and waits for this thread before it goes.
            None => unsafe { self.runtime.own_queues.queue(agent) }.ok_or("there is no queue for it")?,
        };
        let packet = Packet {
            header: packet_type::KERNEL_DISPATCH | BARRIER_BIT | FENCES,
            kernarg: arguments.as_ptr() as u64,
            completion: signal,
            ..packet
        };
        // SAFETY: as above; the only packet of the queue. Its kernel stays while the request has it, its arguments and buffers until
        // it has ended, or its queue.
        unsafe { queue.submit(&packet) };
        match self.wait(signal, true) {
            Ok(()) => {
                self.queues.insert(agent.0, queue);
                Ok(())
            }
            Err(why) => {
                // SAFETY: the runtime lives.
                unsafe { queue.destroy() };
                Err(format!("a dispatch on copies {why}"))
            }
        }
    }

    /// What differs between the copies, for each argument.
    fn found(
        &mut self,
        (measure, agent): (Measure, Agent),
        pointers: &[(Pointer, Allocation)],
        copied: &[CopiedAllocation],
    ) -> Result<Vec<ValidationText>, String> {
        let mut rows = Vec::new();
        for copied in copied {
            let allocation = copied.allocation;
            let mut here: Vec<&Pointer> = pointers
                .iter()
                .map(|(pointer, _)| pointer)
                .filter(|pointer| pointer.base == allocation.base)
                .collect();
            here.sort_by_key(|pointer| (pointer.address, pointer.offset));
            here.dedup_by_key(|pointer| pointer.address);
            // Each argument has what lies up to the next one; the first also what lies before it.
            for (number, pointer) in here.iter().enumerate() {
                let end = here.get(number + 1).map_or(allocation.base + allocation.size, |next| next.address);
                let mut found = ComparedBuffer::default();
                if number == 0 {
                    self.stretch(
                        (measure, agent),
                        copied,
                        pointer.address,
                        allocation.base..pointer.address,
                        &mut found,
                    )?;
                }
                self.stretch((measure, agent), copied, pointer.address, pointer.address..end, &mut found)?;
                rows.push(row(measure, pointer, found));
            }
        }
        rows.sort_by_key(|row| row.offset);
        Ok(rows)
    }

    /// Compares the addresses `range` of an allocation, whose elements are counted from the address `from`.
    fn stretch(
        &mut self,
        (measure, agent): (Measure, Agent),
        copied: &CopiedAllocation,
        from: u64,
        range: std::ops::Range<u64>,
        found: &mut ComparedBuffer,
    ) -> Result<(), String> {
        let size = measure.element.size() as u64;
        let mut at = range.start;
        while at < range.end {
            // Elements before the argument end where it begins.
            let odd = from.saturating_sub(at) % size;
            let length = if odd > 0 { odd } else { (range.end - at).min(CHUNK as u64) };
            let place = (at as i64 - from as i64).div_euclid(size as i64);
            let offset = at - copied.allocation.base;
            self.bring(0, self.readable(&copied.allocation, at), length as usize)?;
            for (piece, memory) in [(1, copied.copies[ORIGINAL]), (2, copied.copies[CANDIDATE])] {
                let address = memory.as_ptr() as u64 + offset;
                self.bring(piece, (address, agent), length as usize)?;
            }
            found.add(measure, place, [0, 1, 2].map(|piece| self.brought(piece, length as usize)));
            at += length;
        }
        Ok(())
    }

    /// Copies `bytes` bytes to the host, as piece number `piece`.
    fn bring(&mut self, piece: usize, from: (u64, Agent), bytes: usize) -> Result<(), String> {
        let host = self.host.as_ref().ok_or("there is no host memory")?;
        let to = (host.memory.as_ptr() as u64 + (piece * CHUNK) as u64, host.owner);
        self.copy(to, from, bytes)
    }

    /// The piece of that number.
    fn brought(&self, piece: usize, bytes: usize) -> &[u8] {
        let Some(host) = &self.host else { return &[] };
        // SAFETY: one of three pieces of this size, which was written before and is this thread's.
        unsafe { std::slice::from_raw_parts(host.memory.as_ptr().add(piece * CHUNK), bytes.min(CHUNK)) }
    }

    fn copy(&mut self, to: (u64, Agent), from: (u64, Agent), bytes: usize) -> Result<(), String> {
        if bytes == 0 {
            return Ok(());
        }
        let signal = self.armed()?;
        // SAFETY: the runtime lives, and waits for this thread before it goes. The application keeps its buffers while a dispatch that
        // uses them waits; memory of ours stays until the copy has ended, or for ever.
        if !unsafe { self.runtime.memory.copy(to, from, bytes, signal) } {
            return Err("the runtime refuses to copy its buffers".into());
        }
        self.wait(signal, false).map_err(|why| {
            // What it says of a later copy would be wrong.
            self.signal = None;
            format!("a copy of its buffers {why}")
        })
    }

    /// The signal, ready for another operation.
    fn armed(&self) -> Result<Signal, String> {
        if let Some(why) = (self.cut_off)() {
            return Err(why.into());
        }
        let signal = self.signal.filter(|_| (self.runtime.lives)()).ok_or("the runtime is gone")?;
        // SAFETY: a signal of ours, of a runtime that lives; no operation under way has it, and nobody waits on it.
        unsafe { signal.memory() }.value.store(1, Ordering::Release);
        Ok(signal)
    }

    /// Waits for an operation. A copy is short, and reads what the application may free afterwards: it is not cut off.
    fn wait(&self, signal: Signal, is_kernel: bool) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            if !(self.runtime.lives)() {
                return Err("was cut off: the program ended".into());
            }
            if let Some(why) = (self.cut_off)().filter(|_| is_kernel) {
                return Err(why.into());
            }
            // SAFETY: a signal of ours, of a runtime that lives.
            if unsafe { signal.memory() }.value.load(Ordering::Acquire) < 1 {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("did not end in {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        if !(self.runtime.lives)() {
            return;
        }
        for (_, queue) in self.queues.drain() {
            // SAFETY: the runtime lives, and waits for this thread before it goes.
            unsafe { queue.destroy() };
        }
        // Without the signal a copy may still be under way.
        if let Some((signal, host)) = self.signal.zip(self.host.as_ref()) {
            // SAFETY: as above; all operations have ended, and the queues are gone.
            unsafe {
                self.runtime.memory.free(host.memory);
                (self.runtime.own_queues.signal_destroy)(signal);
            }
        }
    }
}

/// The arguments that the application has made.
fn arguments(request: &ValidationRequest) -> Result<Vec<u8>, String> {
    let size = request.validation.kernargs as usize;
    if size > MOST_ARGUMENTS {
        return Err(format!("it has {size} bytes of arguments"));
    }
    match request.original.kernarg {
        0 => Ok(vec![0; size]),
        // SAFETY: the application has made the arguments of its own kernel, which has so many bytes of them, and keeps them until the
        // dispatch has completed (HSA 1.2 §2.9.6), which waits at its gate.
        address => Ok(unsafe { std::slice::from_raw_parts(address as *const u8, size) }.to_vec()),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

fn row(measure: Measure, pointer: &Pointer, found: ComparedBuffer) -> ValidationText {
    let (first, values) = found.first.unwrap_or_default();
    ValidationText {
        argument: Some(pointer.argument),
        offset: pointer.offset,
        compared: measure.element.name(),
        elements: found.elements,
        written: found.written,
        different: found.different,
        first,
        values,
        largest: found.largest.map_or_else(String::new, |largest| largest.to_string()),
        reason: String::new(),
    }
}
