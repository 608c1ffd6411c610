//! The values of `--hip-apis`, `--hsa-apis` and `--cuda-apis`: refused before the command runs where the recorder would leave a part of it out.

use rpd_settings::{function_list, tip};

/// The recorder's own description of HIP's functions, a line each.
static HIP: &str = include_str!("../../../tracer/src/sources/hip/description/hip_api.tsv");
/// The recorder's own list of the functions in the tables of the HSA runtime, a line each.
static HSA: &str = include_str!("../../../tracer/src/sources/hsa/api_calls/tables.txt");

/// `--hip-apis`: a list as RPDT_HIP_APIS has it: `all`, `none`, `+name`, `-name`.
pub(crate) fn hip(text: &str) -> Result<String, String> {
    for (place, word) in text.split(',').map(str::trim).filter(|word| !word.is_empty()).enumerate() {
        let name = word.trim_start_matches(['+', '-']);
        let signs = word.len() - name.len();
        match (place, word) {
            (0, "all" | "none") => {}
            (_, "all" | "none") => return Err(format!("{word} stands in front of the list")),
            _ if hip_functions().all(|known| known != name) => {
                let words = ["all", "none"].into_iter().filter(|_| place == 0 && signs == 0);
                return Err(format!(
                    "no version of HIP has {name}{}",
                    tip(name, hip_functions().chain(words))
                ));
            }
            _ if signs != 1 => return Err(format!("{word} is neither +{name} nor -{name}")),
            _ => {}
        }
    }
    Ok(text.to_string())
}

fn hip_functions() -> impl Iterator<Item = &'static str> {
    HIP.lines().filter_map(|line| line.strip_prefix("api\t")?.split('\t').next())
}

/// `--hsa-apis`: a list as RPDT_HSA_APIS has it.
pub(crate) fn hsa(text: &str) -> Result<String, String> {
    let functions = HSA.lines().filter_map(|line| line.split(' ').next_back());
    let (named, unknown) = function_list::read(text, functions);
    match unknown.first() {
        Some(wrong) => Err(format!("the recorder knows no such function of the HSA runtime: {wrong}")),
        None if named.is_empty() && text.trim() != "none" => {
            Err("leaves no function to record; a list begins with all, or with a name".into())
        }
        None => Ok(text.to_string()),
    }
}

/// `--cuda-apis`: a list as RPDT_CUDA_APIS has it: `all`, `none`, `args`, `+name`, `-name`. Which functions there are, CUPTI alone knows, in the process.
pub(crate) fn cuda(text: &str) -> Result<String, String> {
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
    fn what_the_recorder_would_leave_out_of_hip_is_refused() {
        assert!(hip_functions().count() > 300);
        for list in
            ["all", "none", "none, +hipMalloc,+hipFree", "-hipMalloc,+hipEventQuery", "all,-hipFree", ""]
        {
            assert_eq!(hip(list).as_deref(), Ok(list));
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
            assert_eq!(hip(list), Err(why.to_string()));
        }
    }

    #[test]
    fn what_the_recorder_would_leave_out_of_hsa_is_refused() {
        for list in ["all", "none", "all,-hsa_signal_load_*", "hsa_queue_create, hsa_amd_memory_*"] {
            assert_eq!(hsa(list).as_deref(), Ok(list));
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
            assert_eq!(hsa(list), Err(why.to_string()));
        }
    }

    #[test]
    fn what_the_recorder_would_leave_out_of_cuda_is_refused() {
        for list in
            ["all", "none, +cudaMalloc", "-cudaMalloc,+cuEventQuery", "args", "args,all,-cudaFree", ""]
        {
            assert_eq!(cuda(list).as_deref(), Ok(list));
        }
        for (list, why) in [
            ("cudaFree", "cudaFree is none of all, none, args, +cudaFunction and -cudaFunction"),
            ("+hipFree", "+hipFree is none of all, none, args, +cudaFunction and -cudaFunction"),
            ("-cudaFree,none", "none stands in front of the list"),
        ] {
            assert_eq!(cuda(list), Err(why.to_string()));
        }
    }
}
