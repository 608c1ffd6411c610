//! Numbers of the fields of Perfetto's messages, as its published definitions have them.

/// TracePacket.
pub(super) mod packet {
    pub(in super::super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// TrackEvent.
pub(super) mod event {
    pub(in super::super) const CATEGORY_IIDS: u32 = 3;
    pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const NAME_IID: u32 = 10;
    pub(in super::super) const TRACK_UUID: u32 = 11;
    pub(in super::super) const NAME: u32 = 23;
    pub(in super::super) const COUNTER_VALUE: u32 = 30;
    pub(in super::super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(in super::super) const FLOW_IDS: u32 = 47;
    pub(in super::super) const TERMINATING_FLOW_IDS: u32 = 48;

    /// What an event is.
    pub(in super::super) const BEGIN: u64 = 1;
    pub(in super::super) const END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
    pub(in super::super) const COUNTER: u64 = 4;
}

/// DebugAnnotation.
pub(super) mod annotation {
    pub(in super::super) const NAME_IID: u32 = 1;
    pub(in super::super) const INT: u32 = 4;
    pub(in super::super) const STRING: u32 = 6;
    pub(in super::super) const ARRAY: u32 = 12;
    pub(in super::super) const STRING_IID: u32 = 17;
}

/// InternedData, and what is in each of its fields.
pub(super) mod interned {
    pub(in super::super) const EVENT_CATEGORIES: u32 = 1;
    pub(in super::super) const EVENT_NAMES: u32 = 2;
    pub(in super::super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(in super::super) const STRING_VALUES: u32 = 29;
    pub(in super::super) const IID: u32 = 1;
    pub(in super::super) const TEXT: u32 = 2;
}

/// TrackDescriptor.
pub(super) mod track {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT_UUID: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;
    pub(in super::super) const CHILD_ORDERING: u32 = 11;
    pub(in super::super) const SIBLING_ORDER_RANK: u32 = 12;
    pub(in super::super) const PROCESS_ORDERING: u32 = 19;
    pub(in super::super) const THREAD_ORDERING: u32 = 20;

    /// Of CHILD_ORDERING: by SIBLING_ORDER_RANK.
    pub(in super::super) const EXPLICIT_CHILDREN: u64 = 3;
    /// Of PROCESS_ORDERING and THREAD_ORDERING: by SORT_INDEX.
    pub(in super::super) const EXPLICIT: u64 = 1;
}

/// ProcessDescriptor and ThreadDescriptor.
pub(super) mod host {
    pub(in super::super) const PID: u32 = 1;
    pub(in super::super) const TID: u32 = 2;
    pub(in super::super) const SORT_INDEX: u32 = 3;
    pub(in super::super) const THREAD_NAME: u32 = 5;
    pub(in super::super) const PROCESS_NAME: u32 = 6;
}

/// CounterDescriptor.
pub(super) mod counter {
    pub(in super::super) const UNIT: u32 = 3;
    pub(in super::super) const COUNT: u64 = 2;
}

/// ClockSnapshot.
pub(super) mod clock {
    pub(in super::super) const CLOCKS: u32 = 1;
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const TIME: u32 = 2;

    pub(in super::super) const REALTIME: u64 = 1;
    pub(in super::super) const MONOTONIC: u64 = 3;
    pub(in super::super) const BOOTTIME: u64 = 6;
}
