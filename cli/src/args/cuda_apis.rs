//! The value of `--cuda-apis`: refused before the command runs where the recorder would leave a part of it out.

/// A list as RPDT_CUDA_APIS has it: `all`, `none`, `args`, `+name`, `-name`. Which functions there are, CUPTI alone knows, in the process.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "args");
    for (place, word) in words.enumerate() {
        let name = word.strip_prefix(['+', '-']);
        match (place, word) {
            (0, "all" | "none") => {}
            (_, "all" | "none") => return Err(format!("{word} stands in front of the list")),
            _ if name.is_some_and(|name| name.starts_with("cu")) => {}
            _ => return Err(format!("{word} is none of all, none, args, +cudaFunction and -cudaFunction")),
        }
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_recorder_would_leave_out_is_refused() {
        for list in
            ["all", "none, +cudaMalloc", "-cudaMalloc,+cuEventQuery", "args", "args,all,-cudaFree", ""]
        {
            assert_eq!(parse(list).as_deref(), Ok(list));
        }
        for (list, why) in [
            ("cudaFree", "cudaFree is none of all, none, args, +cudaFunction and -cudaFunction"),
            ("+hipFree", "+hipFree is none of all, none, args, +cudaFunction and -cudaFunction"),
            ("-cudaFree,none", "none stands in front of the list"),
        ] {
            assert_eq!(parse(list), Err(why.to_string()));
        }
    }
}
