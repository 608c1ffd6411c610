//! One walk over the calling thread's stack: addresses only, no allocation, no lock, no system call once the thread has walked
//! before and the objects on its stack are known.

use std::ops::Range;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder};

use super::table::{FrameUnwinder, KnownObject, ObjectTable, Stacks};
use super::word;
use rpd_preload::stack_bounds;

/// Frames kept of one call, nearest to it first.
pub const MOST: usize = 128;
/// Frames of HIP and of the recorder that may lie between a call and the recorder.
const MOST_BETWEEN: usize = 64;
/// Bytes of stack that making a walker may take: its tables pass over the stack on their way into memory.
const ROOM_TO_BEGIN: usize = 160 << 10;
/// Bytes of stack that a walk may take.
const ROOM_TO_WALK: usize = 24 << 10;
/// User space ends here (x86-64 with four levels of page tables).
const END_OF_USER_SPACE: u64 = 1 << 47;

/// What the processor holds where a walk begins.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
}

/// What a thread keeps between walks.
pub(super) struct Walker {
    /// The thread's own stack; empty where the system does not say.
    stack: Range<u64>,
    tools: Option<Tools>,
}

/// Made when a thread walks its stack for the first time.
struct Tools {
    table: Arc<ObjectTable>,
    /// For code outside of objects: knows none, so it goes by frame pointers. The table may still hold an object that lay there once,
    /// whose unwind tables are gone.
    bare: FrameUnwinder,
    cache: Box<CacheX86_64<MustNotAllocateDuringUnwind>>,
}

impl Walker {
    /// For the calling thread.
    pub(super) fn new() -> Walker {
        Walker { stack: stack_bounds::of_this_thread().unwrap_or_default(), tools: None }
    }

    /// Fills `words` with the frames from the first one that is the application's on; how many there are.
    ///
    /// On a stack that is not the thread's own (a coroutine's, an alternate signal stack) nobody knows where it ends: no frames.
    pub(super) fn walk(&mut self, stacks: &Stacks, from: Registers, words: &mut [u64; MOST]) -> usize {
        let room = if self.tools.is_none() { ROOM_TO_BEGIN } else { ROOM_TO_WALK };
        if !has_room(&self.stack, from.sp, room) {
            return 0;
        }
        if self.tools.is_none() {
            self.tools = Tools::new(stacks);
        }
        let live = from.sp..self.stack.end;
        self.tools.as_mut().map_or(0, |tools| tools.walk(stacks, from, live, words))
    }
}

impl Tools {
    /// A function of its own, as [`Tools::walk`] is: their room on the stack is not taken before it is known to be there.
    #[inline(never)]
    fn new(stacks: &Stacks) -> Option<Tools> {
        let cache = Box::new(CacheX86_64::new_in());
        Some(Tools { table: stacks.table()?, bare: FrameUnwinder::new(), cache })
    }

    /// As [`Walker::walk`]; memory is read in `live` only.
    #[inline(never)]
    fn walk(&mut self, stacks: &Stacks, from: Registers, live: Range<u64>, words: &mut [u64; MOST]) -> usize {
        stacks.refresh(&mut self.table);
        let mut read = |address: u64| match live.contains(&address) && live.end - address >= 8 {
            // SAFETY: between this thread's stack pointer and the end of its stack: mapped, and written by nobody else.
            true => Ok(unsafe { (address as *const u64).read_unaligned() }),
            false => Err(()),
        };
        let mut registers = UnwindRegsX86_64::new(from.ip, from.sp, from.bp);
        let mut at = FrameAddress::from_instruction_pointer(from.ip);
        let mut place = Location::Unknown;
        let (mut count, mut between) = (0, true);
        for _ in 0..MOST + MOST_BETWEEN {
            let code = at.address_for_lookup();
            if !place.holds(code) {
                place = self.place(stacks, code);
            }
            let word = match &place {
                Location::Code(code_of) => {
                    between &= code_of.between;
                    word::new(code_of.id, code.wrapping_sub(code_of.bias))
                }
                Location::Unknown if !live.contains(&code) => {
                    between = false;
                    word::new(0, code)
                }
                // A number that is no return address: the walk has gone astray.
                _ => break,
            };
            if !between {
                words[count] = word;
                count += 1;
            }
            if count == MOST {
                break;
            }
            at = match interrupted(&place, at, &registers, &mut read) {
                Some(before) => {
                    registers = before;
                    FrameAddress::from_instruction_pointer(before.ip())
                }
                None => {
                    let known = matches!(place, Location::Code(_));
                    let frames = if known { &self.table.frames } else { &self.bare };
                    let caller = frames.unwind_frame(at, &mut registers, &mut self.cache, &mut read);
                    let Ok(Some(address)) = caller else { break };
                    let Some(caller) = FrameAddress::from_return_address(address) else { break };
                    caller
                }
            };
            if at.address() >= END_OF_USER_SPACE || registers.sp() < live.start {
                break;
            }
        }
        count
    }

    /// Where `code` lies, as the loader says.
    fn place(&mut self, stacks: &Stacks, code: u64) -> Location {
        let Some(object) = stacks.loader.find(code as usize) else { return Location::Unknown };
        // SAFETY: an address of its code is on this stack; whoever unloaded it now would unload what is about to run.
        if unsafe { self.table.get(&object) }.is_none() {
            // SAFETY: as above.
            let Some(table) = (unsafe { stacks.learn(&object) }) else { return Location::Unknown };
            self.table = table;
        }
        // SAFETY: as above.
        unsafe { self.table.get(&object) }.map_or(Location::Unknown, |entry| Location::of(entry, code))
    }
}

/// Whether `sp` lies in `stack` with that many bytes left below it.
fn has_room(stack: &Range<u64>, sp: u64, bytes: usize) -> bool {
    stack.contains(&sp) && sp - stack.start > bytes as u64
}

/// What lies at an address.
enum Location {
    /// Code of an object.
    Code(ObjectCode),
    /// No object, or one that could not be learned: code made at run time.
    Unknown,
    /// An object, but not its code.
    NoCode,
}

/// Code of an object.
struct ObjectCode {
    segment: Range<u64>,
    bias: u64,
    id: u16,
    between: bool,
}

impl Location {
    fn of(entry: &KnownObject, code: u64) -> Location {
        let Some(segment) = entry.text.iter().find(|text| text.contains(&code)) else {
            return Location::NoCode;
        };
        let (bias, id, between) = (entry.bias(), entry.id, entry.between);
        Location::Code(ObjectCode { segment: segment.clone(), bias, id, between })
    }

    /// Whether this is also the place of `code`.
    fn holds(&self, code: u64) -> bool {
        matches!(self, Location::Code(here) if here.segment.contains(&code))
    }
}

/// What was running when a signal came, if `at` is where its handler returns to: the C library's call of rt_sigreturn.
fn interrupted(
    place: &Location,
    at: FrameAddress,
    registers: &UnwindRegsX86_64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<UnwindRegsX86_64> {
    /// `mov $15, %rax; syscall`, by which debuggers know it too.
    const RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    /// In `struct ucontext` (Linux, x86-64) at the stack pointer: the saved registers.
    const BP: u64 = 120;
    const SP: u64 = 160;
    const IP: u64 = 168;
    let code = at.address();
    let Location::Code(ObjectCode { segment, .. }) = place else { return None };
    let inside = segment.contains(&code) && segment.end - code >= RETURN.len() as u64;
    // SAFETY: inside an executable segment of an object that is loaded.
    if !inside || unsafe { (code as *const [u8; RETURN.len()]).read_unaligned() } != RETURN {
        return None;
    }
    let context = registers.sp();
    let mut saved = |offset: u64| read(context.checked_add(offset)?).ok();
    Some(UnwindRegsX86_64::new(saved(IP)?, saved(SP)?, saved(BP)?))
}
