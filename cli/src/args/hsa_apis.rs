//! The value of `--hsa-apis`: refused before the command runs where the recorder would leave a part of it out.

use rpd_settings::function_list;

/// The recorder's own list of the functions in the tables of the HSA runtime, a line each.
static TABLES: &str = include_str!("../../../tracer/src/sources/hsa/api_calls/tables.txt");

/// A list as RPDT_HSA_APIS has it.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let functions = TABLES.lines().filter_map(|line| line.split(' ').next_back());
    let (named, unknown) = function_list::read(text, functions);
    match unknown.first() {
        Some(wrong) => Err(format!("the recorder knows no such function of the HSA runtime: {wrong}")),
        None if named.is_empty() && text.trim() != "none" => {
            Err("leaves no function to record; a list begins with all, or with a name".into())
        }
        None => Ok(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_recorder_would_leave_out_is_refused() {
        for list in ["all", "none", "all,-hsa_signal_load_*", "hsa_queue_create, hsa_amd_memory_*"] {
            assert_eq!(parse(list).as_deref(), Ok(list));
        }
        for (list, why) in [
            (
                "hsa_queue_creat",
                "the recorder knows no such function of the HSA runtime: hsa_queue_creat; did you mean hsa_queue_create?",
            ),
            ("all,hip*", "the recorder knows no such function of the HSA runtime: hip*"),
            ("", "leaves no function to record; a list begins with all, or with a name"),
            ("-hsa_init", "leaves no function to record; a list begins with all, or with a name"),
        ] {
            assert_eq!(parse(list), Err(why.to_string()));
        }
    }
}
