//! The number by which messages name a file of the source: libstdc++'s `std::hash<std::string>` of its path, as AMD's compiler plugin and
//! rpd_probe.h work it out.

const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SEED: u64 = 0xc70f_6907;

/// The hash of a path (libstdc++ hash_bytes.cc, `_Hash_bytes` of 64 bits: MurmurHash64A with its own seed).
pub fn file_name_hash(path: &[u8]) -> u64 {
    let mixed = |value: u64| value ^ value >> 47;
    let (words, rest) = path.as_chunks::<8>();
    let mut hash = SEED ^ (path.len() as u64).wrapping_mul(MULTIPLIER);
    for word in words {
        let word = mixed(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    mixed(mixed(hash).wrapping_mul(MULTIPLIER))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of g++ 12.
    #[test]
    fn as_libstdcxx_has_it() {
        for (path, hash) in [
            ("", 0x553e_9390_1e46_2a6e),
            ("a", 0x454d_dee4_88c1_ed6b),
            ("abcdefg", 0xdeee_6830_a3af_82af),
            ("abcdefgh", 0x783d_b3e3_8db8_98bb),
        ] {
            assert_eq!(file_name_hash(path.as_bytes()), hash, "{path}");
        }
    }
}
