//! RPDT_HIP_APIS and RPDT_HIP_CALLS: which calls of HIP are recorded, and how they are observed.

use std::sync::OnceLock;

use rpd_transport::env::Env;

use super::filter::HipFilter;

const ALL: [HipCalls; 2] = [HipCalls::Callbacks, HipCalls::Symbols];

/// How calls of HIP are observed, where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HipCalls {
    /// By HIP's own callbacks.
    Callbacks,
    /// By its functions' symbols.
    Symbols,
}

impl HipCalls {
    /// The word for it.
    fn name(self) -> &'static str {
        match self {
            HipCalls::Callbacks => "callbacks",
            HipCalls::Symbols => "symbols",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct HipConfig {
    /// Functions of the HIP API whose calls are recorded.
    pub(super) apis: HipFilter,
    /// How calls are observed; the recorder's choice if None.
    pub(super) calls: Option<HipCalls>,
}

static CONFIG: OnceLock<HipConfig> = OnceLock::new();

/// What the user asked for.
pub(super) fn get() -> &'static HipConfig {
    CONFIG.get_or_init(HipConfig::default)
}

pub(super) fn configure(env: &mut Env<'_>) {
    let config = HipConfig::read(env);
    CONFIG.get_or_init(|| config);
}

impl HipConfig {
    fn read(env: &mut Env<'_>) -> HipConfig {
        // The second is the name of an earlier version.
        let name = ["RPDT_HIP_CALLS", "RPDT_HIP_DOOR"].into_iter().find(|name| env.text(name).is_some());
        let calls = name.and_then(|name| env.choice(name, ALL.map(HipCalls::name))).map(|place| ALL[place]);
        let Some(text) = env.text("RPDT_HIP_APIS") else {
            return HipConfig { calls, ..HipConfig::default() };
        };
        let (apis, unknown) = HipFilter::read(&text.to_string_lossy());
        if !unknown.is_empty() {
            env.complain(format!(
                "RPDT_HIP_APIS: {} ignored; it is all, none, or a list of +hipFunction and -hipFunction, such as -hipMalloc,+hipEventQuery",
                unknown.join(" and ")
            ));
        }
        HipConfig { apis, calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_one_line() {
        let read = |vars: &[(&str, &str)]| {
            let get = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            let mut env = Env::new(&get);
            let config = HipConfig::read(&mut env);
            (config, env.complaints().to_vec())
        };
        let (config, complaints) =
            read(&[("RPDT_HIP_CALLS", "symbols"), ("RPDT_HIP_APIS", "none,+hipMalloc")]);
        assert_eq!((config.calls, complaints), (Some(HipCalls::Symbols), vec![]));
        assert!(config.apis.contains("hipMalloc") && !config.apis.contains("hipFree"));
        let both = [("RPDT_HIP_DOOR", "callbacks"), ("RPDT_HIP_CALLS", "symbols")];
        assert_eq!(read(&both).0.calls, Some(HipCalls::Symbols), "the name of now counts");
        assert_eq!(read(&both[..1]).0.calls, Some(HipCalls::Callbacks));
        let (config, complaints) = read(&[("RPDT_HIP_DOOR", "table"), ("RPDT_HIP_APIS", "+hipMaloc")]);
        assert_eq!((config.calls, config.apis), (None, HipFilter::default()));
        assert_eq!(complaints[0], "RPDT_HIP_DOOR=table is not auto, callbacks or symbols; auto is used");
        assert!(complaints[1].starts_with("RPDT_HIP_APIS: +hipMaloc (did you mean +hipMalloc?) ignored"));
    }
}
