//! What a call that launches one kernel, or copies, was asked for: its arguments as the columns of its row.

use rpd_transport::source::{Launch, Transfer};

use super::arguments::{Arguments, unsigned};
use super::description::{Api, ArgumentRole, FieldClass, RowKind, Structure};

/// From the arguments kept of a call to `api`, whose row is [`RowKind::Kernel`].
pub(super) fn launch(api: &Api, bytes: &[u8]) -> Launch {
    let mut launch = Launch::default();
    let mut items = None;
    for (field, bytes) in Arguments::new(api, bytes).each() {
        let number = unsigned(bytes) as u32;
        match field.role {
            Some(ArgumentRole::Grid) => launch.grid = dimensions(bytes),
            Some(ArgumentRole::Block) => launch.workgroup = dimensions(bytes),
            Some(ArgumentRole::GridAxis(axis)) => launch.grid[usize::from(axis)] = number,
            Some(ArgumentRole::ItemsAxis(axis)) => items.get_or_insert([0; 3])[usize::from(axis)] = number,
            Some(ArgumentRole::BlockAxis(axis)) => launch.workgroup[usize::from(axis)] = number,
            Some(ArgumentRole::Shared) => launch.shared = number,
            Some(ArgumentRole::Stream) => launch.stream = unsigned(bytes),
            Some(ArgumentRole::What) => look_into_config(&mut launch, bytes),
            _ => {}
        }
    }
    if let Some(items) = items {
        let groups = |axis: usize| u32::div_ceil(items[axis], launch.workgroup[axis].max(1));
        launch.grid = std::array::from_fn(groups);
    }
    launch
}

/// Offsets as in HIP 7.1 hip_runtime_api.h, the same in both structures.
fn look_into_config(launch: &mut Launch, config: &[u8]) {
    let at = |begin: usize, end: usize| config.get(begin..end).unwrap_or_default();
    (launch.grid, launch.workgroup) = (dimensions(at(0, 12)), dimensions(at(12, 24)));
    (launch.shared, launch.stream) = (unsigned(at(24, 28)) as u32, unsigned(at(LAUNCH_CONFIG_STREAM, 40)));
}

/// Place of the stream in a [`Structure::LaunchConfig`].
pub(super) const LAUNCH_CONFIG_STREAM: usize = 32;

fn dimensions(bytes: &[u8]) -> [u32; 3] {
    std::array::from_fn(|axis| unsigned(bytes.get(4 * axis..4 * axis + 4).unwrap_or_default()) as u32)
}

/// From the arguments kept of a call to `api`; nothing unless its row is [`RowKind::Copy`].
pub(super) fn transfer(api: &Api, bytes: &[u8]) -> Option<Transfer> {
    let RowKind::Copy { sync, kind } = api.row else { return None };
    let mut copy = Transfer { sync, kind, ..Transfer::default() };
    for (field, bytes) in Arguments::new(api, bytes).each() {
        let number = unsigned(bytes);
        match (field.role, field.class) {
            (Some(ArgumentRole::Dst), _) => copy.dst = number,
            (Some(ArgumentRole::Src), _) => copy.src = number,
            (Some(ArgumentRole::Bytes), _) => copy.bytes = number,
            (Some(ArgumentRole::Width), _) => copy.width = number,
            (Some(ArgumentRole::Height), _) => copy.height = number,
            (Some(ArgumentRole::Kind), _) => copy.kind = Some(number as u32),
            (Some(ArgumentRole::Stream), _) => copy.stream = number,
            (Some(ArgumentRole::DstDevice), _) => copy.dst_device = Some(number as i32),
            (Some(ArgumentRole::SrcDevice), _) => copy.src_device = Some(number as i32),
            (Some(ArgumentRole::What), FieldClass::Structure(structure)) => {
                look_into(&mut copy, structure, bytes)
            }
            _ => {}
        }
    }
    if copy.height > 0 {
        copy.bytes = copy.width.saturating_mul(copy.height);
    }
    Some(copy)
}

/// Offsets as in HIP 5.2 driver_types.h.
fn look_into(copy: &mut Transfer, structure: Structure, bytes: &[u8]) {
    let at = |offset: usize, size: usize| unsigned(bytes.get(offset..offset + size).unwrap_or_default());
    let first = |places: [usize; 3]| places.into_iter().map(|place| at(place, 8)).find(|value| *value != 0);
    match structure {
        Structure::Copy3D => {
            copy.src = first([32, 0, 0]).unwrap_or(0);
            copy.dst = first([96, 64, 64]).unwrap_or(0);
            (copy.width, copy.height) = (at(128, 8), at(136, 8).saturating_mul(at(144, 8)));
            copy.kind = Some(at(152, 4) as u32);
        }
        Structure::DriverCopy2D => {
            copy.src = first([32, 24, 40]).unwrap_or(0);
            copy.dst = first([88, 80, 96]).unwrap_or(0);
            (copy.width, copy.height) = (at(112, 8), at(120, 8));
        }
        // Its sizes grew from u32 to size_t in HIP 6.
        Structure::DriverCopy3D if bytes.len() > 128 => {
            copy.src = first([48, 40, 56]).unwrap_or(0);
            copy.dst = first([128, 120, 136]).unwrap_or(0);
            (copy.width, copy.height) = (at(160, 8), at(168, 8).saturating_mul(at(176, 8)));
        }
        Structure::DriverCopy3D => {
            copy.src = first([32, 24, 40]).unwrap_or(0);
            copy.dst = first([88, 80, 96]).unwrap_or(0);
            (copy.width, copy.height) = (at(112, 4), at(116, 4).saturating_mul(at(120, 4)));
        }
        Structure::Launch | Structure::LaunchConfig => {}
    }
}
