//! The value of `--hip-apis`: refused before the command runs where the recorder would leave a part of it out.

use rpd_settings::tip;

/// The recorder's own description of HIP's functions, a line each.
static DESCRIPTION: &str = include_str!("../../../tracer/src/sources/hip/description/hip_api.tsv");

/// A list as RPDT_HIP_APIS has it: `all`, `none`, `+name`, `-name`.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    for (place, word) in text.split(',').map(str::trim).filter(|word| !word.is_empty()).enumerate() {
        let name = word.trim_start_matches(['+', '-']);
        let signs = word.len() - name.len();
        match (place, word) {
            (0, "all" | "none") => {}
            (_, "all" | "none") => return Err(format!("{word} stands in front of the list")),
            _ if functions().all(|known| known != name) => {
                let words = ["all", "none"].into_iter().filter(|_| place == 0 && signs == 0);
                return Err(format!("no version of HIP has {name}{}", tip(name, functions().chain(words))));
            }
            _ if signs != 1 => return Err(format!("{word} is neither +{name} nor -{name}")),
            _ => {}
        }
    }
    Ok(text.to_string())
}

fn functions() -> impl Iterator<Item = &'static str> {
    DESCRIPTION.lines().filter_map(|line| line.strip_prefix("api\t")?.split('\t').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_recorder_would_leave_out_is_refused() {
        assert!(functions().count() > 300);
        for list in
            ["all", "none", "none, +hipMalloc,+hipFree", "-hipMalloc,+hipEventQuery", "all,-hipFree", ""]
        {
            assert_eq!(parse(list).as_deref(), Ok(list));
        }
        for (list, why) in [
            ("+hipMaloc", "no version of HIP has hipMaloc; did you mean hipMalloc?"),
            ("-hipMalloc,+hipmemcpy", "no version of HIP has hipmemcpy; did you mean hipMemcpy?"),
            ("nome", "no version of HIP has nome; did you mean none?"),
            ("-cudaSomethingElse", "no version of HIP has cudaSomethingElse"),
            ("hipFree", "hipFree is neither +hipFree nor -hipFree"),
            ("+-hipFree", "+-hipFree is neither +hipFree nor -hipFree"),
            ("-hipFree,none", "none stands in front of the list"),
        ] {
            assert_eq!(parse(list), Err(why.to_string()));
        }
    }
}
