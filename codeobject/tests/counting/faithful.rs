//! Whether counting code does what the original does: each instruction of the original is there, once and in order, as it was or in another form of
//! the same length or a longer one, and each branch leads to the counting code of what the original branch leads to.

use std::collections::BTreeSet;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSegment};
use rpd_codeobject::counting::Rewritten;
use rpd_codeobject::instruction::{Control, Instruction};

/// The words of an instruction; the second of a short one is none.
pub(crate) type Words = (u32, Option<u32>);

/// What is found.
#[derive(Default)]
pub(crate) struct Faithful {
    /// Instructions of the original that are there unchanged, and branches that lead elsewhere.
    pub(crate) copies: u64,
    pub(crate) branches: u64,
    /// Those that were put in, or stand for one of the original.
    pub(crate) put_in: u64,
    /// All of the last two kinds.
    pub(crate) new: BTreeSet<Words>,
}

/// Virtual addresses of a code object.
struct Code<'a> {
    object: &'a [u8],
    /// Address, offset and length of each segment.
    segments: Vec<(u64, u64, u64)>,
}

impl Code<'_> {
    fn of(object: &[u8]) -> Code<'_> {
        let elf = ElfFile64::<LittleEndian>::parse(object).expect("an ELF file");
        let segments = elf.segments().map(|load| {
            let (offset, length) = load.file_range();
            (load.address(), offset, length)
        });
        let segments = segments.collect();
        Code { object, segments }
    }

    fn instruction(&self, address: u64) -> Instruction {
        let (begin, offset, length) = *self
            .segments
            .iter()
            .find(|(begin, _, length)| (*begin..*begin + *length).contains(&address))
            .expect("a segment");
        let word = |at: u64| {
            let at = (at - begin < length).then(|| (at - begin + offset) as usize)?;
            Some(u32::from_le_bytes(self.object.get(at..at + 4)?.try_into().ok()?))
        };
        Instruction::decode(word(address).expect("a word"), word(address + 4)).expect("an instruction")
    }
}

fn words(instruction: &Instruction) -> Words {
    let [first, second] = instruction.words;
    (first, (instruction.length == 8).then_some(second))
}

impl Faithful {
    /// Looks at all that was made of an object.
    ///
    /// # Panics
    /// When it is not faithful.
    pub(crate) fn add(&mut self, object: &[u8], made: &Rewritten) {
        let (before, after) = (Code::of(object), Code::of(&made.object));
        // Where the counting code of each block begins: blocks of one group lie one behind the other, each function once.
        let mut begins = std::collections::HashMap::<u64, Vec<u64>>::new();
        let mut last = None;
        for (new, _, original) in made.map.stretches() {
            if last != Some(original) {
                begins.entry(original).or_default().push(new);
            }
            last = Some(original);
        }
        for block in &made.blocks {
            for begin in &begins[&block.start] {
                self.block(&before, &after, made, (block.start, block.end), *begin);
            }
        }
    }

    fn block(
        &mut self,
        before: &Code<'_>,
        after: &Code<'_>,
        made: &Rewritten,
        (start, end): (u64, u64),
        new: u64,
    ) {
        let (mut at, mut original) = (new, start);
        while original < end {
            let expected = before.instruction(original);
            let found = after.instruction(at);
            assert_eq!(made.map.original(at), Some(original), "{at:#x}");
            let next = at + u64::from(found.length);
            // The last instruction of what is put in front of one of the original, and of what stands for it.
            let is_last = made.map.original(next) != Some(original);
            let targets = target(&found, next).zip(target(&expected, original + 4)).filter(|_| is_last);
            if is_last && words(&found) == words(&expected) {
                self.copies += 1;
            } else {
                self.new.insert(words(&found));
                if let Some((to, old)) = targets {
                    assert_eq!(made.map.original(to), Some(old), "the branch at {original:#x}");
                    self.branches += 1;
                } else {
                    self.put_in += 1;
                }
            }
            if is_last {
                original += u64::from(expected.length);
            }
            at = next;
        }
    }
}

/// Where a direct branch leads, whose end is `next`.
fn target(instruction: &Instruction, next: u64) -> Option<u64> {
    match instruction.control() {
        Control::Branch(distance) | Control::Conditional(distance) => {
            Some(next.wrapping_add_signed(i64::from(distance) * 4))
        }
        _ => None,
    }
}
