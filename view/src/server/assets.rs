//! The files of the page, as they lie in `view/page`.

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files.
macro_rules! assets {
    ($list:ident: $($name:literal: $kind:expr,)*) => {
        /// Name, type and content of each.
        pub(crate) const $list: &[(&str, &str, &[u8])] = &[$(($name, $kind, include_bytes!(concat!("../../page/", $name)))),*];
    };
}

assets! {
    ASSETS:
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "app.mjs": SCRIPT,
    "arrangement.mjs": SCRIPT,
    "axis.mjs": SCRIPT,
    "choice.mjs": SCRIPT,
    "code.mjs": SCRIPT,
    "colour.mjs": SCRIPT,
    "compare.mjs": SCRIPT,
    "console.mjs": SCRIPT,
    "csv.mjs": SCRIPT,
    "dialogs.mjs": SCRIPT,
    "elements.mjs": SCRIPT,
    "embedded.mjs": SCRIPT,
    "flame.mjs": SCRIPT,
    "format.mjs": SCRIPT,
    "growth.mjs": SCRIPT,
    "health.mjs": SCRIPT,
    "keys.mjs": SCRIPT,
    "labels.mjs": SCRIPT,
    "layout.mjs": SCRIPT,
    "levels.mjs": SCRIPT,
    "marks.mjs": SCRIPT,
    "names.mjs": SCRIPT,
    "own.mjs": SCRIPT,
    "paint.mjs": SCRIPT,
    "panes.mjs": SCRIPT,
    "recording.mjs": SCRIPT,
    "reports.mjs": SCRIPT,
    "roofline.mjs": SCRIPT,
    "rows.mjs": SCRIPT,
    "runs.mjs": SCRIPT,
    "server.mjs": SCRIPT,
    "stack.mjs": SCRIPT,
    "state.mjs": SCRIPT,
    "stored.mjs": SCRIPT,
    "table.mjs": SCRIPT,
    "tiles.mjs": SCRIPT,
    "timeline.mjs": SCRIPT,
}

// The overview of a dataset has these, and takes what it shares from the timeline.
assets! {
    OVERVIEW:
    "dataset.html": "text/html; charset=utf-8",
    "dataset.css": "text/css; charset=utf-8",
    "dataset.mjs": SCRIPT,
    "tracks.mjs": SCRIPT,
}

/// Names the directory whose files are served in place of those that are compiled in, for who changes the page.
const DIRECTORY: &str = "RPD_VIEW_ASSETS";

/// Type and content of a file of the page.
pub(super) fn asset(name: &str) -> Option<(&'static str, Vec<u8>)> {
    let (name, kind, content) = ASSETS.iter().chain(OVERVIEW).find(|(known, ..)| *known == name)?;
    let written = std::env::var_os(DIRECTORY)
        .and_then(|directory| std::fs::read(std::path::Path::new(&directory).join(name)).ok());
    Some((kind, written.unwrap_or_else(|| content.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What only an exported page has.
    const EXPORTED: [&str; 4] = ["embedded.mjs", "levels.mjs", "runs.mjs", "stored.mjs"];
    /// What is loaded when somebody looks at it.
    const LATER: [&str; 2] = ["compare.mjs", "roofline.mjs"];

    #[test]
    fn the_page_is_no_larger_than_it_may_be() {
        let served = ASSETS.iter().filter(|(name, ..)| !EXPORTED.contains(name) && !LATER.contains(name));
        let bytes: usize = served.map(|(_, _, content)| content.len()).sum();
        assert!(bytes <= 250_000, "{bytes} bytes");
        let is_loaded_first = |name: &&str| {
            let import = format!("from \"./{name}\"");
            ASSETS.iter().any(|(_, _, content)| String::from_utf8_lossy(content).contains(&import))
        };
        assert_eq!(LATER.iter().find(|name| is_loaded_first(name)), None);
    }

    #[test]
    fn the_overview_is_no_larger_than_it_may_be() {
        let bytes: usize = OVERVIEW.iter().map(|(_, _, content)| content.len()).sum();
        assert!(bytes <= 24_000, "{bytes} bytes");
    }
}
