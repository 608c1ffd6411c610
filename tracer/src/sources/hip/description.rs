//! The names of HIP's functions and the meaning of their arguments, for every version known.
//!
//! The text is hip_api.tsv, written by description/generate.py from HIP's own headers, which also explains its form. It is read
//! once, when HIP is found in the process.

use std::sync::OnceLock;

use super::arguments;

static TEXT: &str = include_str!("description/hip_api.tsv");

/// A HIP version as its own table of names tells it.
#[derive(Debug)]
pub(super) struct HipVersion {
    /// Such as `5.2`, or `5.6-5.7`.
    pub(super) name: &'static str,
    /// sizeof(hip_api_data_t).
    pub(super) data_size: usize,
    /// Largest id of a function.
    pub(super) last_id: u32,
    /// FNV-1a of `id name` of all functions, a line each.
    hash: u64,
}

/// Which row of the file a call fills beside rocpd_api.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// None.
    None,
    /// rocpd_kernelapi: the call launches one kernel.
    Kernel,
    /// None: the call launches kernels on several devices.
    Kernels,
    /// None: the call launches a graph.
    Graph,
    /// rocpd_copyapi.
    Copy {
        /// The call waits for the copy.
        sync: bool,
        /// hipMemcpyKind where the name says it.
        kind: Option<u32>,
    },
}

/// What is kept of an argument, and how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldClass {
    /// A pointer or handle.
    Pointer,
    /// A NUL-terminated text, of which the beginning is kept.
    Text,
    /// size_t.
    Size,
    /// A signed number or an enumeration.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// float or double.
    Float,
    /// dim3: three u32.
    Dim3,
    /// hipExtent: three size_t.
    Extent,
    /// A structure that says what is copied or launched.
    Structure(Structure),
    /// Something else, which is not kept.
    Opaque,
}

/// Structures that are looked into (HIP 5.2 driver_types.h, hip_runtime_api.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    /// hipMemcpy3DParms.
    Copy3D,
    /// hip_Memcpy2D.
    DriverCopy2D,
    /// HIP_MEMCPY3D.
    DriverCopy3D,
    /// hipLaunchParams or hipKernelNodeParams: shown by the row, or not at all.
    Launch,
    /// hipLaunchConfig_t or HIP_LAUNCH_CONFIG (HIP 7.1).
    LaunchConfig,
}

/// The column that an argument fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentRole {
    /// Host function or hipFunction_t of a kernel.
    Function,
    /// Workgroups, all dimensions.
    Grid,
    /// Workgroups of one dimension.
    GridAxis(u8),
    /// Work-items of one dimension.
    ItemsAxis(u8),
    /// Work-items of a workgroup, all dimensions.
    Block,
    /// Work-items of a workgroup, one dimension.
    BlockAxis(u8),
    /// Dynamic LDS, bytes.
    Shared,
    /// Stream.
    Stream,
    /// Destination of a copy.
    Dst,
    /// Source of a copy.
    Src,
    /// Bytes of a copy.
    Bytes,
    /// Bytes per row.
    Width,
    /// Rows.
    Height,
    /// hipMemcpyKind.
    Kind,
    /// HIP's number of the destination's device.
    DstDevice,
    /// HIP's number of the source's device.
    SrcDevice,
    /// A structure with all of that.
    What,
}

/// One argument.
#[derive(Debug)]
pub(crate) struct ArgumentField {
    /// Its place in hip_api_data_t.
    pub(crate) offset: usize,
    /// What it is; of a place for a result: what the result is.
    pub(crate) class: FieldClass,
    /// It is the address of a place for a result.
    pub(crate) result: bool,
    /// Bytes of the value.
    pub(crate) size: usize,
    /// The parameter's name.
    pub(crate) name: &'static str,
    /// The column it fills.
    pub(crate) role: Option<ArgumentRole>,
}

/// Where a call's stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPlace {
    /// At that place in hip_api_data_t.
    Argument(usize),
    /// In the structure whose address is there, a [`Structure::LaunchConfig`].
    Config(usize),
}

/// One function, with the layout of its arguments.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: &'static str,
    /// First version with this layout.
    since: &'static str,
    /// What it fills.
    pub(crate) row: RowKind,
    /// Where the stream stands, of launches and copies.
    pub(crate) stream: Option<StreamPlace>,
    /// Its arguments in order.
    pub(crate) fields: Vec<ArgumentField>,
    /// See [`arguments::pieces`].
    pub(super) plain: Option<Vec<(usize, usize)>>,
}

impl Api {
    /// Whether calls launch kernels, of their own or of a graph.
    pub(super) fn launches(&self) -> bool {
        matches!(self.row, RowKind::Kernel | RowKind::Kernels | RowKind::Graph)
    }

    /// Whether calls launch one kernel.
    pub(crate) fn is_launch(&self) -> bool {
        self.row == RowKind::Kernel
    }
}

/// All of it.
#[derive(Debug)]
pub(crate) struct HipDescription {
    pub(super) versions: Vec<HipVersion>,
    /// By name; of one name, later versions last.
    pub(super) apis: Vec<Api>,
}

/// The description, read at the first call.
pub(crate) fn get() -> &'static HipDescription {
    static DESCRIPTION: OnceLock<HipDescription> = OnceLock::new();
    DESCRIPTION.get_or_init(|| HipDescription::read(TEXT))
}

impl HipDescription {
    fn read(text: &'static str) -> HipDescription {
        let mut description = HipDescription { versions: Vec::new(), apis: Vec::new() };
        for line in text.lines() {
            let mut cells = line.split('\t');
            match cells.next() {
                Some("version") => description.versions.extend(version(cells)),
                Some("api") => description.apis.extend(api(cells)),
                _ => {}
            }
        }
        description
    }

    /// The version whose functions are these; `names` are (id, name) in ascending order.
    pub(super) fn version_of<'a>(&self, names: impl Iterator<Item = (u32, &'a str)>) -> Option<&HipVersion> {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (id, name) in names {
            for byte in format!("{id} {name}\n").bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        self.versions.iter().find(|version| version.hash == hash)
    }

    /// Place in `apis` of the function `name` as `version` has it.
    pub(super) fn find(&self, name: &str, version: &HipVersion) -> Option<u16> {
        let place = |name: &str| self.versions.iter().position(|known| known.name == name);
        let end = self.apis.partition_point(|api| api.name <= name);
        let begin = self.apis.partition_point(|api| api.name < name);
        let mut layouts = (begin..end).rev();
        layouts.find(|at| place(self.apis[*at].since) <= place(version.name)).map(|at| at as u16)
    }

    /// Place in `apis` of the latest layout of the function `name`.
    pub(super) fn newest(&self, name: &str) -> Option<u16> {
        let end = self.apis.partition_point(|api| api.name <= name);
        let last = end.checked_sub(1).filter(|last| self.apis[*last].name == name);
        last.map(|at| at as u16)
    }

    /// Every name of a function, each once.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let mut last = "";
        self.apis.iter().map(|api| api.name).filter(move |name| std::mem::replace(&mut last, name) != *name)
    }
}

fn version(mut cells: impl Iterator<Item = &'static str>) -> Option<HipVersion> {
    let name = cells.next()?;
    let [data_size, last_id] = [cells.next()?, cells.next()?].map(|number| number.parse().ok());
    let hash = u64::from_str_radix(cells.next()?, 16).ok()?;
    Some(HipVersion { name, data_size: data_size? as usize, last_id: last_id?, hash })
}

fn api(mut cells: impl Iterator<Item = &'static str>) -> Option<Api> {
    let (name, since, row) = (cells.next()?, cells.next()?, cells.next()?);
    let mut words = row.split(',');
    let row = match words.next()? {
        "kernel" => RowKind::Kernel,
        "kernels" => RowKind::Kernels,
        "graph" => RowKind::Graph,
        "copy" => {
            let words: Vec<&str> = words.collect();
            let kind = words.iter().find_map(|word| word.strip_prefix("kind=")?.parse().ok());
            RowKind::Copy { sync: words.contains(&"sync"), kind }
        }
        _ => RowKind::None,
    };
    let fields = cells.map(field).collect::<Option<Vec<ArgumentField>>>()?;
    let stream = fields.iter().find_map(|field| match (field.role, field.class) {
        (Some(ArgumentRole::Stream), _) => Some(StreamPlace::Argument(field.offset)),
        (_, FieldClass::Structure(Structure::LaunchConfig)) => Some(StreamPlace::Config(field.offset)),
        _ => None,
    });
    let plain = arguments::pieces(&fields);
    Some(Api { name, since, row, stream, fields, plain })
}

fn field(text: &'static str) -> Option<ArgumentField> {
    let mut parts = text.split(':');
    let (offset, class, size, name) =
        (parts.next()?.parse().ok()?, parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let (result, class) = match class.strip_prefix('o') {
        Some(class) => (true, class),
        None => (false, class),
    };
    let class = match class {
        "p" => FieldClass::Pointer,
        "s" => FieldClass::Text,
        "z" => FieldClass::Size,
        "i" => FieldClass::Signed,
        "u" => FieldClass::Unsigned,
        "f" => FieldClass::Float,
        "d" => FieldClass::Dim3,
        "t" => FieldClass::Extent,
        "mhipMemcpy3DParms" => FieldClass::Structure(Structure::Copy3D),
        "mhip_Memcpy2D" => FieldClass::Structure(Structure::DriverCopy2D),
        "mHIP_MEMCPY3D" => FieldClass::Structure(Structure::DriverCopy3D),
        "mhipLaunchConfig_t" | "mHIP_LAUNCH_CONFIG" => FieldClass::Structure(Structure::LaunchConfig),
        "mhipLaunchParams" | "mhipKernelNodeParams" => FieldClass::Structure(Structure::Launch),
        _ => FieldClass::Opaque,
    };
    let role = match parts.next() {
        Some(word) => Some(role(word)?),
        None => None,
    };
    Some(ArgumentField { offset, class, result, size, name, role })
}

fn role(word: &str) -> Option<ArgumentRole> {
    let axis = |prefix: &str| match word.strip_prefix(prefix)? {
        "X" => Some(0),
        "Y" => Some(1),
        "Z" => Some(2),
        _ => None,
    };
    Some(match word {
        "function" => ArgumentRole::Function,
        "grid" => ArgumentRole::Grid,
        "block" => ArgumentRole::Block,
        "shared" => ArgumentRole::Shared,
        "stream" => ArgumentRole::Stream,
        "dst" => ArgumentRole::Dst,
        "src" => ArgumentRole::Src,
        "size" => ArgumentRole::Bytes,
        "width" => ArgumentRole::Width,
        "height" => ArgumentRole::Height,
        "kind" => ArgumentRole::Kind,
        "dstDevice" => ArgumentRole::DstDevice,
        "srcDevice" => ArgumentRole::SrcDevice,
        "what" | "launches" => ArgumentRole::What,
        _ => match (axis("grid"), axis("items"), axis("block")) {
            (Some(axis), _, _) => ArgumentRole::GridAxis(axis),
            (_, Some(axis), _) => ArgumentRole::ItemsAxis(axis),
            (_, _, Some(axis)) => ArgumentRole::BlockAxis(axis),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_line_is_understood() {
        let description = get();
        let lines = |kind: &str| TEXT.lines().filter(|line| line.starts_with(kind)).count();
        assert_eq!(description.versions.len(), lines("version\t"));
        assert_eq!(description.apis.len(), lines("api\t"));
        assert!(description.apis.is_sorted_by(|a, b| a.name <= b.name), "found by bisection");
        let hashes: HashSet<u64> = description.versions.iter().map(|version| version.hash).collect();
        assert_eq!(hashes.len(), description.versions.len(), "told apart by their names");
    }

    #[test]
    fn launches_and_copies_have_what_their_rows_need() {
        for api in &get().apis {
            let has = |role: ArgumentRole| api.fields.iter().any(|field| field.role == Some(role));
            match api.row {
                RowKind::Kernel if has(ArgumentRole::What) => assert!(has(ArgumentRole::Function), "{api:?}"),
                RowKind::Kernel => {
                    assert!(
                        has(ArgumentRole::Function) && has(ArgumentRole::Shared) && has(ArgumentRole::Stream),
                        "{api:?}"
                    );
                    assert!(
                        has(ArgumentRole::Grid)
                            || has(ArgumentRole::GridAxis(2))
                            || has(ArgumentRole::ItemsAxis(2)),
                        "{api:?}"
                    );
                    assert!(has(ArgumentRole::Block) || has(ArgumentRole::BlockAxis(2)), "{api:?}");
                }
                RowKind::Copy { kind, .. } => {
                    let plain = has(ArgumentRole::Dst)
                        && has(ArgumentRole::Src)
                        && (has(ArgumentRole::Bytes) || has(ArgumentRole::Height));
                    assert!(
                        has(ArgumentRole::What) || plain && (kind.is_some() || has(ArgumentRole::Kind)),
                        "{api:?}"
                    );
                }
                _ => {}
            }
        }
    }
}
