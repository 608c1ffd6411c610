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

/// A histogram in a line, a column for each step as high as its number. What is more than nothing is seen.
pub(crate) fn columns(steps: &[u64]) -> String {
    columns_of(steps, steps.iter().copied().max().unwrap_or(0))
}

/// The same where a full column is `greatest`.
pub(crate) fn columns_of(steps: &[u64], greatest: u64) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = greatest.max(1);
    let height = |number: u64| (number as f64 / greatest as f64 * 8.0).round() as usize;
    steps.iter().map(|number| EIGHTHS[height(*number).clamp(usize::from(*number > 0), 8)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_high_as_its_number() {
        assert_eq!(columns(&[8, 4, 0, 1]), "█▄ ▁");
        assert_eq!(columns_of(&[8, 4, 0, 1], 16), "▄▂ ▁");
        assert_eq!((columns(&[1_000_000, 1, 0]), columns(&[0, 0])), ("█▁ ".to_string(), "  ".to_string()));
    }

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
