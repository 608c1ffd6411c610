//! RPDT_CUPTI, RPDT_CUPTI_YIELD, RPDT_CUDA_APIS and RPDT_CUDA_GRAPHS: which CUPTI is used, whether others may have it, which calls are
//! recorded, and how graphs are.

use std::path::PathBuf;
use std::sync::OnceLock;

use rpd_transport::env::Env;

use super::filter::CudaFilter;

#[derive(Debug, Default)]
pub(super) struct CudaConfig {
    /// The library that the user names.
    pub(super) cupti: Option<PathBuf>,
    /// It is left to another profiler of the process that asks for it.
    pub(super) yields: bool,
    /// Functions whose calls are recorded.
    pub(super) apis: CudaFilter,
    /// Graphs are recorded as a whole, not node by node.
    pub(super) whole_graphs: bool,
}

static CONFIG: OnceLock<CudaConfig> = OnceLock::new();

/// What the user asked for.
pub(super) fn get() -> &'static CudaConfig {
    CONFIG.get_or_init(CudaConfig::default)
}

pub(super) fn configure(env: &mut Env<'_>) {
    let config = CudaConfig::read(env);
    CONFIG.get_or_init(|| config);
}

impl CudaConfig {
    fn read(env: &mut Env<'_>) -> CudaConfig {
        let cupti = env.text("RPDT_CUPTI").map(PathBuf::from);
        let text = env.text("RPDT_CUDA_APIS").unwrap_or_default();
        let (apis, wrong) = CudaFilter::read(&text.to_string_lossy());
        if !wrong.is_empty() {
            env.complain(format!(
                "RPDT_CUDA_APIS: {} ignored; it is all, none, or a list of args, +cudaFunction and -cudaFunction, such as \
                 -cudaMalloc,+cudaEventRecord,args",
                wrong.join(" and ")
            ));
        }
        let yields = env.number("RPDT_CUPTI_YIELD", 0, 0..=1) != 0;
        let graphs = env.text("RPDT_CUDA_GRAPHS").unwrap_or_default();
        let whole_graphs = graphs == "launch";
        if !whole_graphs && !graphs.is_empty() && graphs != "node" {
            let graphs = graphs.to_string_lossy();
            env.complain(format!("RPDT_CUDA_GRAPHS={graphs} is not node or launch; node is used"));
        }
        CudaConfig { cupti, yields, apis, whole_graphs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_one_line() {
        let get = |name: &str| match name {
            "RPDT_CUPTI" => Some("/opt/libcupti.so.13".into()),
            "RPDT_CUDA_APIS" => Some("none,+cudaMalloc,hipMalloc".into()),
            "RPDT_CUDA_GRAPHS" => Some("nodes".into()),
            _ => None,
        };
        let mut env = Env::new(&get);
        let config = CudaConfig::read(&mut env);
        assert_eq!(config.cupti, Some(PathBuf::from("/opt/libcupti.so.13")));
        assert!(config.apis.contains("cudaMalloc") && !config.apis.contains("cudaFree"));
        assert!(!config.whole_graphs && !config.yields);
        assert!(env.complaints()[0].starts_with("RPDT_CUDA_APIS: hipMalloc ignored; "));
        assert_eq!(env.complaints()[1], "RPDT_CUDA_GRAPHS=nodes is not node or launch; node is used");
    }
}
