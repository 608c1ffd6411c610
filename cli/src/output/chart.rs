//! Charts of characters.

/// Columns of a bar at most.
const WIDEST: usize = 40;

/// Columns that a bar may take beside `others` columns of a line of `room`.
pub(crate) fn bar_room(room: Option<usize>, others: usize) -> usize {
    room.map_or(WIDEST, |room| room.saturating_sub(others).clamp(4, WIDEST))
}

/// A bar as long as `value` is of `greatest`, in at most `room` columns. What is more than nothing is seen.
pub(crate) fn bar(value: u128, greatest: u128, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0 || greatest == 0 {
        return String::new();
    }
    let length = value as f64 / greatest as f64 * (room * EIGHTHS.len()) as f64;
    let length = (length.round() as usize).max(1);
    format!("{}{}", "█".repeat(length / EIGHTHS.len()), EIGHTHS[length % EIGHTHS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        assert_eq!(bar(8, 8, 4), "████");
        assert_eq!(bar(4, 8, 4), "██");
        assert_eq!(bar(1, 8, 4), "▌");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!((bar(0, 8, 4), bar(0, 0, 4)), (String::new(), String::new()));
        assert_eq!([None, Some(60), Some(10)].map(|room| bar_room(room, 30)), [40, 30, 4]);
    }
}
