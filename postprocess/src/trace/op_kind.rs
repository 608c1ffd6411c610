//! The kind of a GPU operation, from the text of its type.

use serde::Serialize;

/// The kinds that people count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpKind {
    /// A kernel of the program.
    Kernel,
    /// Memory copied.
    Copy,
    /// Memory filled.
    Fill,
    /// A barrier, a marker, or what a later recorder adds.
    Other,
}

/// The types of kernels, as SQL has a list of texts.
pub const KERNEL_TYPES: &str = "'KernelExecution', 'Task'";

impl OpKind {
    /// The kind of an op with this `opType`. Files of rocmProfileData call some kernels `Task`.
    pub fn of(op_type: &str) -> OpKind {
        match op_type {
            "KernelExecution" | "Task" => OpKind::Kernel,
            copy if copy.starts_with("Copy") => OpKind::Copy,
            fill if fill.starts_with("Fill") => OpKind::Fill,
            _ => OpKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KERNEL_TYPES, OpKind};

    #[test]
    fn the_types_of_every_writer_have_a_kind() {
        for (op_type, kind) in [
            ("KernelExecution", OpKind::Kernel),
            ("Task", OpKind::Kernel),
            ("CopyHostToDevice", OpKind::Copy),
            ("CopyDeviceToDevice2D", OpKind::Copy),
            ("FillBuffer", OpKind::Fill),
            ("", OpKind::Other),
            ("Barrier", OpKind::Other),
        ] {
            assert_eq!(OpKind::of(op_type), kind, "{op_type}");
            let listed = KERNEL_TYPES.split(", ").any(|listed| listed == format!("'{op_type}'"));
            assert_eq!(listed, kind == OpKind::Kernel, "{op_type}");
        }
    }
}
