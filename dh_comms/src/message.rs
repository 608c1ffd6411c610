//! The messages in the bytes of a sub-buffer. They come one after the other, each a header, a word per lane, and data.

use bytemuck::pod_read_unaligned;

use crate::layout::WaveHeader;

/// Bytes of a header.
pub const HEADER: usize = size_of::<WaveHeader>();
/// Lanes that a wave may have.
const LANES: usize = 64;

/// One message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: WaveHeader,
    /// A word for each active lane, if there are some.
    lanes: &'a [u8],
    data: &'a [u8],
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// The lanes access memory: see [`Message::addresses`].
    Address(Access),
    /// Ticks of the device's clock.
    Interval {
        /// Begin.
        begin: u64,
        /// End.
        end: u64,
    },
    /// The wave enters the basic block of that number.
    Block(u32),
    /// Something else.
    Other(u32),
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// `read`, `write`, `read_write`, or empty.
    pub kind: &'static str,
    /// Where the addresses are.
    pub space: Space,
    /// Bytes of each lane.
    pub size: u32,
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Any.
    Flat,
    /// Memory of devices and the host.
    Global,
    /// Global data share.
    Gds,
    /// LDS.
    Shared,
    /// Constants.
    Constant,
    /// Scratch.
    Scratch,
    /// It is not known.
    Unknown,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The rest is shorter than a header.
    Torn,
    /// It says to have more bytes than there are, or so many that are no whole words.
    Length,
    /// The number of lanes does not agree with the mask of lanes.
    Lanes,
    /// Its data do not fit its lanes, or its kind.
    Data,
}

impl Space {
    /// As the file has it.
    pub fn name(self) -> &'static str {
        match self {
            Space::Flat => "flat",
            Space::Global => "global",
            Space::Gds => "gds",
            Space::Shared => "lds",
            Space::Constant => "constant",
            Space::Scratch => "scratch",
            Space::Unknown => "",
        }
    }
}

impl Access {
    /// From the header's `detail`: kind in bits 0-1, space in bits 2-5, size in bits 6-21.
    fn of(detail: u32) -> Access {
        let kind = ["", "read", "write", "read_write"][(detail & 3) as usize];
        let space = match detail >> 2 & 15 {
            0 => Space::Flat,
            1 => Space::Global,
            2 => Space::Gds,
            3 => Space::Shared,
            4 => Space::Constant,
            5 => Space::Scratch,
            _ => Space::Unknown,
        };
        Access { kind, space, size: detail >> 6 & 0xffff }
    }
}

impl<'a> Message<'a> {
    /// The first message of `bytes`, or why it is none; and the bytes behind it, as far as its length can be believed.
    pub fn read(bytes: &'a [u8]) -> (Result<Message<'a>, Damage>, &'a [u8]) {
        let Some((header, rest)) = bytes.split_at_checked(HEADER) else { return (Err(Damage::Torn), &[]) };
        let header: WaveHeader = pod_read_unaligned(header);
        let length = header.data_size & !(WaveHeader::VECTOR | WaveHeader::LANE_HEADERS);
        let length = usize::try_from(length).ok().filter(|length| length.is_multiple_of(4));
        match length.and_then(|length| rest.split_at_checked(length)) {
            Some((data, rest)) => (Message::of(header, data), rest),
            None => (Err(Damage::Length), &[]),
        }
    }

    /// A header, and all that is behind it.
    fn of(header: WaveHeader, data: &'a [u8]) -> Result<Message<'a>, Damage> {
        if usize::from(header.lanes) > LANES || header.exec.count_ones() != u32::from(header.lanes) {
            return Err(Damage::Lanes);
        }
        let has_lane_headers = header.data_size & WaveHeader::LANE_HEADERS != 0;
        let lanes = if has_lane_headers { 4 * usize::from(header.lanes) } else { 0 };
        let (lanes, data) = data.split_at_checked(lanes).ok_or(Damage::Data)?;
        let message = Message { header, lanes, data };
        let is_whole = data.len().is_multiple_of(4 * message.senders().max(1));
        if is_whole && message.kind_or_damage().is_some() { Ok(message) } else { Err(Damage::Data) }
    }

    /// Lanes that have data of their own.
    fn senders(&self) -> usize {
        if self.header.data_size & WaveHeader::VECTOR != 0 { usize::from(self.header.lanes) } else { 1 }
    }

    fn kind_or_damage(&self) -> Option<MessageKind> {
        match self.header.kind {
            0 => {
                let is_whole =
                    self.header.data_size & WaveHeader::VECTOR != 0 && self.data.len() == 8 * self.senders();
                is_whole.then(|| MessageKind::Address(Access::of(self.header.detail)))
            }
            1 => {
                let is_whole = self.header.data_size & WaveHeader::VECTOR == 0 && self.data.len() == 16;
                is_whole.then(|| MessageKind::Interval { begin: self.long(0, 0), end: self.long(2, 0) })
            }
            2 => self.data.is_empty().then_some(MessageKind::Block(self.header.detail)),
            other => Some(MessageKind::Other(other)),
        }
    }

    /// What it is about.
    pub fn kind(&self) -> MessageKind {
        self.kind_or_damage().unwrap_or(MessageKind::Other(self.header.kind))
    }

    /// Its bytes in the sub-buffer.
    pub fn len(&self) -> usize {
        HEADER + self.lanes.len() + self.data.len()
    }

    /// Whether it has no data.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Data are transposed: word `number` of all lanes, then the next word of all lanes.
    fn word(&self, number: usize, sender: usize) -> u32 {
        let place = 4 * (number * self.senders() + sender);
        self.data.get(place..place + 4).map_or(0, pod_read_unaligned)
    }

    fn long(&self, number: usize, sender: usize) -> u64 {
        u64::from(self.word(number, sender)) | u64::from(self.word(number + 1, sender)) << 32
    }

    /// The lanes' addresses with the lanes' numbers, of a message about an access.
    pub fn addresses(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let exec = self.header.exec;
        let lanes = (0..64).filter(move |lane| exec >> lane & 1 != 0);
        let is_access = matches!(self.kind(), MessageKind::Address(_));
        lanes.enumerate().filter(move |_| is_access).map(|(sender, lane)| (lane, self.long(0, sender)))
    }

    /// The work-items of the lanes, where it says them.
    pub fn work_items(&self) -> impl Iterator<Item = [u32; 3]> + '_ {
        let words = self.lanes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        words.map(|word| [word & 0x3ff, word >> 10 & 0x3ff, word >> 20 & 0x3ff])
    }

    /// Data of a message of another kind, as they are.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Wave of its workgroup.
    pub fn wave(&self) -> u32 {
        u32::from(self.header.wave) & 15
    }

    /// XCC, SE and CU that it ran on.
    pub fn place(&self) -> [u32; 3] {
        let wave = u32::from(self.header.wave);
        [wave >> 4 & 15, wave >> 8 & 7, wave >> 11 & 15]
    }
}

/// All messages of the bytes of one sub-buffer; `damaged` is told of bytes that are none.
pub fn each<'a>(
    mut bytes: &'a [u8],
    mut message: impl FnMut(Message<'a>),
    mut damaged: impl FnMut(Damage, usize),
) {
    while !bytes.is_empty() {
        let (read, rest) = Message::read(bytes);
        match read {
            Ok(read) => message(read),
            Err(damage) => damaged(damage, bytes.len() - rest.len()),
        }
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with these words of data.
    fn bytes(header: WaveHeader, words: &[u32]) -> Vec<u8> {
        let mut header = header;
        header.data_size |= 4 * words.len() as u64;
        let mut bytes = bytemuck::bytes_of(&header).to_vec();
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    fn address(exec: u64, detail: u32) -> WaveHeader {
        let data_size = WaveHeader::VECTOR | WaveHeader::LANE_HEADERS;
        WaveHeader { exec, data_size, detail, lanes: exec.count_ones() as u8, ..WaveHeader::default() }
    }

    #[test]
    fn addresses_are_transposed() {
        let detail = 2 | 3 << 2 | 16 << 6;
        let mut all = bytes(address(0b1001, detail), &[1, 2 | 3 << 10 | 4 << 20, 0x1000, 0x2000, 7, 8]);
        all.extend(bytes(WaveHeader { kind: 2, detail: 5, exec: 1, lanes: 1, ..WaveHeader::default() }, &[]));
        let (message, rest) = Message::read(&all);
        let message = message.unwrap();
        let access = Access { kind: "write", space: Space::Shared, size: 16 };
        assert_eq!(message.kind(), MessageKind::Address(access));
        assert_eq!(message.addresses().collect::<Vec<_>>(), [(0, 0x7_0000_1000), (3, 0x8_0000_2000)]);
        assert_eq!(message.work_items().collect::<Vec<_>>(), [[1, 0, 0], [2, 3, 4]]);
        assert_eq!(message.len() + rest.len(), all.len());
        assert_eq!(Message::read(rest).0.unwrap().kind(), MessageKind::Block(5));
    }

    #[test]
    fn intervals_and_unknown_kinds() {
        let header = WaveHeader { kind: 1, exec: 3, lanes: 2, ..WaveHeader::default() };
        let interval = bytes(header, &[5, 1, 6, 1]);
        let expected = MessageKind::Interval { begin: 0x1_0000_0005, end: 0x1_0000_0006 };
        assert_eq!(Message::read(&interval).0.unwrap().kind(), expected);
        let other = bytes(WaveHeader { kind: 77, exec: 3, lanes: 2, ..WaveHeader::default() }, &[9]);
        let message = Message::read(&other).0.unwrap();
        assert_eq!((message.kind(), message.data()), (MessageKind::Other(77), &[9, 0, 0, 0][..]));
        assert_eq!(message.addresses().count(), 0);
    }

    #[test]
    fn what_is_no_message_is_skipped_as_far_as_its_length_can_be_believed() {
        let block = bytes(WaveHeader { kind: 2, exec: 1, lanes: 1, ..WaveHeader::default() }, &[]);
        let damage = |header: WaveHeader, words: &[u32]| {
            let mut all = bytes(header, words);
            let length = all.len();
            all.extend(&block);
            let (mut found, mut messages) = (Vec::new(), 0);
            each(&all, |_| messages += 1, |damage, skipped| found.push((damage, skipped)));
            assert_eq!(found.len(), 1);
            (found[0].0, found[0].1 == length, messages)
        };
        assert_eq!(
            damage(WaveHeader { exec: 1, lanes: 2, kind: 2, ..WaveHeader::default() }, &[]),
            (Damage::Lanes, true, 1)
        );
        assert_eq!(
            damage(WaveHeader { exec: u64::MAX, lanes: 255, kind: 2, ..WaveHeader::default() }, &[]),
            (Damage::Lanes, true, 1)
        );
        assert_eq!(damage(address(1, 0), &[1]), (Damage::Data, true, 1));
        assert_eq!(damage(address(3, 0), &[1]), (Damage::Data, true, 1));
        assert_eq!(
            damage(WaveHeader { exec: 1, lanes: 1, kind: 2, ..WaveHeader::default() }, &[1]),
            (Damage::Data, true, 1)
        );
        assert_eq!(
            damage(WaveHeader { exec: 1, lanes: 1, data_size: 1 << 61, ..WaveHeader::default() }, &[]).0,
            Damage::Length
        );
        assert_eq!(
            damage(WaveHeader { exec: 1, lanes: 1, data_size: 3, ..WaveHeader::default() }, &[]).0,
            Damage::Length
        );
        assert_eq!(Message::read(&block[..63]).0.unwrap_err(), Damage::Torn);
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let inputs = if std::env::var_os("RPD_SOAK").is_some() { 10_000_000 } else { 100_000 };
        let mut random = fastrand::Rng::with_seed(7);
        let mut sound = bytes(address(0b1011, 1 << 2 | 1), &[0; 9]);
        sound.extend(bytes(WaveHeader { kind: 1, exec: 1, lanes: 1, ..WaveHeader::default() }, &[0; 4]));
        for _ in 0..inputs {
            let mut bytes = sound.clone();
            for _ in 0..random.usize(1..6) {
                let place = random.usize(..bytes.len());
                bytes[place] = random.u8(..);
            }
            bytes.truncate(random.usize(..=bytes.len()));
            let (mut read, mut skipped) = (0, 0);
            each(
                &bytes,
                |message| {
                    read += message.len();
                    message.addresses().chain(message.work_items().map(|item| (item[0], 0))).for_each(drop);
                },
                |_, bytes| skipped += bytes,
            );
            assert_eq!(read + skipped, bytes.len(), "every byte is counted once");
        }
    }
}
