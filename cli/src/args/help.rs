//! Help that fits the terminal. clap breaks a long line of a table and puts the rest at the left margin; this module puts the rest below
//! the text that it belongs to.

use clap::Command;

/// Columns that help has at most.
pub(crate) const WIDTH: usize = 100;

/// What clap begins a usage with.
const USAGE: &str = "Usage: ";

/// The command and those below it, with their usage and the text behind their options broken at `width` columns.
pub(crate) fn fitted(mut command: Command, width: usize) -> Command {
    // The usage of a verb begins with the words that lead to it, which clap puts there by this.
    command.build();
    fit_all(command, width)
}

fn fit_all(mut command: Command, width: usize) -> Command {
    let usage = command.render_usage().to_string();
    let usages: Vec<&str> = usage.trim_start_matches(USAGE).lines().map(str::trim).collect();
    if usages.iter().any(|usage| USAGE.len() + usage.chars().count() > width) {
        let mut lines = Vec::new();
        for usage in usages {
            wrap(&[usage], width - USAGE.len(), &mut lines);
        }
        command = command.override_usage(lines.join(&format!("\n{}", " ".repeat(USAGE.len()))));
    }
    let help = command.get_after_help().map(|help| fit(&help.to_string(), width));
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(|below| fit_all(below, width))
}

/// The text with its lines broken so that `width` columns are enough. Lines of an example stay as they are.
fn fit(text: &str, width: usize) -> String {
    let mut fitted = Vec::new();
    let mut is_example = false;
    let mut lines = text.lines().peekable();
    while let Some(first) = lines.next() {
        is_example = first.starts_with("Example") || is_example && !first.trim().is_empty();
        let mut piece = vec![first];
        while let Some(line) = lines.next_if(|line| !is_example && continues(first, line)) {
            piece.push(line);
        }
        if is_example || piece.iter().all(|line| line.chars().count() <= width) {
            fitted.extend(piece.into_iter().map(String::from));
        } else {
            wrap(&piece, width, &mut fitted);
        }
    }
    fitted.join("\n")
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// Where the text of a line begins: behind the name in front of it, if there is one.
fn text_at(line: &str) -> usize {
    let chars: Vec<char> = line.trim_end().chars().collect();
    let gap = (indent(line)..chars.len()).rev().find(|at| *at > 1 && chars[at - 2..*at] == [' ', ' ']);
    gap.unwrap_or(indent(line))
}

/// Whether `line` goes on with the text of `first`.
fn continues(first: &str, line: &str) -> bool {
    // Lines of a list stand below each other.
    let is_list = text_at(first) == 2;
    let is_text = |line: &str| !line.trim().is_empty() && !line.trim_end().ends_with(':');
    is_text(first)
        && is_text(line)
        && !is_list
        && indent(line) == text_at(first)
        && text_at(line) == indent(line)
}

/// Adds a piece that is too wide, broken: each further line begins below the text of the first.
fn wrap(piece: &[&str], width: usize, fitted: &mut Vec<String>) {
    let at = text_at(piece[0]);
    let mut line: String = piece[0].chars().take(at).collect();
    let text = &piece[0][line.len()..];
    let mut is_begun = false;
    for word in text.split_whitespace().chain(piece[1..].iter().flat_map(|line| line.split_whitespace())) {
        if is_begun && line.chars().count() + 1 + word.chars().count() > width {
            fitted.push(std::mem::replace(&mut line, " ".repeat(at)));
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    fitted.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_on_below_its_texts() {
        let help = "Columns:\n  busy     time in which at least one\n  cause    launch  inside calls that launch\n                   kernels\n           sync    \
                    inside\n\nA sentence of some words,\nand the next line.\n\nExample:\n  rpd gaps a-trace-with-a-long-name.rpd";
        let narrow = "Columns:\n  busy     time in which at\n           least one\n  cause    launch  inside calls\n                   that launch\n                   \
                      kernels\n           sync    inside\n\nA sentence of some words,\nand the next line.\n\nExample:\n  rpd gaps a-trace-with-a-long-name.rpd";
        assert_eq!(fit(help, 31), narrow);
        assert_eq!(fit(help, 100), help);
    }
}
