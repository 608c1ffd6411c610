//! The tables that rocprofv3 writes as comma-separated values, and those of --stats.
//!
//! Facts: generateCSV.cpp (commit 00f9d2c), csv.hpp (029ff02), domain_type.cpp (215367b) and generateStats.cpp of rocprofiler-sdk 1.0 (2025):
//! columns, names of files, texts in quotes and numbers without, how numbers are rounded. Kernels have dynamic LDS too. What the format wants
//! and the trace does not have is 0, or empty.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_escape::csv_field;
use rpd_schema::{Version, session_fact};
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::records::{self, COPIES, Copied, Dispatch, HOST, Rocprofv3Format, TracedCall, agent};
use crate::export::Exported;
use crate::export::json::digits;
use crate::export::section::Section;
use crate::notes::Notes;
use crate::region::Region;
use crate::trace::has_table;

/// LDS is given out in pieces of so many bytes.
const LDS_PIECE: i64 = 512;

const API: &[&str] =
    &["Domain", "Function", "Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp"];
const STATS: &[&str] =
    &["Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage", "MinNs", "MaxNs", "StdDev"];
const KERNEL: &[&str] = &[
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
];
const COPY: &[&str] = &[
    "Kind",
    "Direction",
    "Stream_Id",
    "Source_Agent_Id",
    "Destination_Agent_Id",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
];
const AGENT: &[&str] = &[
    "Node_Id",
    "Logical_Node_Id",
    "Agent_Type",
    "Cpu_Cores_Count",
    "Simd_Count",
    "Cpu_Core_Id_Base",
    "Simd_Id_Base",
    "Max_Waves_Per_Simd",
    "Lds_Size_In_Kb",
    "Gds_Size_In_Kb",
    "Num_Gws",
    "Wave_Front_Size",
    "Num_Xcc",
    "Cu_Count",
    "Array_Count",
    "Num_Shader_Banks",
    "Simd_Arrays_Per_Engine",
    "Cu_Per_Simd_Array",
    "Simd_Per_Cu",
    "Max_Slots_Scratch_Cu",
    "Gfx_Target_Version",
    "Vendor_Id",
    "Device_Id",
    "Location_Id",
    "Domain",
    "Drm_Render_Minor",
    "Num_Sdma_Engines",
    "Num_Sdma_Xgmi_Engines",
    "Num_Sdma_Queues_Per_Engine",
    "Num_Cp_Queues",
    "Max_Engine_Clk_Ccompute",
    "Max_Engine_Clk_Fcompute",
    "Sdma_Fw_Version",
    "Fw_Version",
    "Capability",
    "Cu_Per_Engine",
    "Max_Waves_Per_Cu",
    "Family_Id",
    "Workgroup_Max_Size",
    "Grid_Max_Size",
    "Local_Mem_Size",
    "Hive_Id",
    "Gpu_Id",
    "Workgroup_Max_Dim_X",
    "Workgroup_Max_Dim_Y",
    "Workgroup_Max_Dim_Z",
    "Grid_Max_Dim_X",
    "Grid_Max_Dim_Y",
    "Grid_Max_Dim_Z",
    "Name",
    "Vendor_Name",
    "Product_Name",
    "Model_Name",
];

/// The tables: as their files are called, and their columns.
const COLUMNS: [(&str, &[&str]); 14] = [
    ("agent_info", AGENT),
    ("kernel_trace", KERNEL),
    ("kernel_stats", STATS),
    ("memory_copy_trace", COPY),
    ("memory_copy_stats", STATS),
    ("hip_api_trace", API),
    ("hip_api_stats", STATS),
    ("hsa_api_trace", API),
    ("hsa_api_stats", STATS),
    ("rccl_api_trace", API),
    ("rccl_api_stats", STATS),
    ("marker_api_trace", API),
    ("marker_api_stats", STATS),
    ("domain_stats", STATS),
];

/// Names of the tables, by which their files end.
pub const TABLES: [&str; COLUMNS.len()] = {
    let mut names = [""; COLUMNS.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = COLUMNS[place].0;
        place += 1;
    }
    names
};

/// The file of a table, where the names of all begin so.
#[must_use]
pub fn table_file(begin: &Path, table: &str) -> PathBuf {
    let mut name = OsString::from(begin);
    name.push(format!("_{table}.csv"));
    name.into()
}

/// What is traced and counted by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Domain {
    Kernels,
    Copies,
    Hip,
    Hsa,
    Rccl,
    Markers,
}

/// Each with its name in domain_stats, and the table of its statistics.
const DOMAINS: [(Domain, &str, &str); 6] = [
    (Domain::Kernels, "KERNEL_DISPATCH", "kernel_stats"),
    (Domain::Copies, "MEMORY_COPY", "memory_copy_stats"),
    (Domain::Hip, "HIP_API", "hip_api_stats"),
    (Domain::Hsa, "HSA_API", "hsa_api_stats"),
    (Domain::Rccl, "RCCL_API", "rccl_api_stats"),
    (Domain::Markers, "MARKER_API", "marker_api_stats"),
];

/// A text, which has quotes, or a number, which has none. The crate csv cannot tell them apart: it leaves the quotes out where a text looks
/// like a number, as the marker 7 does.
#[derive(Clone, Copy)]
enum CsvCell<'a> {
    Text(&'a str),
    Number(i64),
    /// A number that was rounded for the table.
    Rounded(&'a str),
}

impl CsvCell<'_> {
    fn put(self, bytes: &mut Vec<u8>) {
        match self {
            CsvCell::Text(text) => {
                bytes.push(b'"');
                bytes.extend_from_slice(csv_field(text).replace('"', "\"\"").as_bytes());
                bytes.push(b'"');
            }
            CsvCell::Number(number) => digits(bytes, number),
            CsvCell::Rounded(number) => bytes.extend_from_slice(number.as_bytes()),
        }
    }
}

/// A table, kept in a temporary file.
pub struct CsvTable {
    /// As its file is called.
    pub name: &'static str,
    rows: Section,
}

impl CsvTable {
    fn new(name: &'static str) -> Result<CsvTable> {
        let mut table = CsvTable { name, rows: Section::new(b"")? };
        let known = COLUMNS.iter().filter(|(known, _)| *known == name);
        let columns: Vec<CsvCell<'_>> =
            known.flat_map(|(_, columns)| columns.iter().map(|column| CsvCell::Text(column))).collect();
        table.row(&columns)?;
        Ok(table)
    }

    fn row(&mut self, cells: &[CsvCell<'_>]) -> Result<()> {
        self.rows.add(|bytes| {
            for (place, cell) in cells.iter().enumerate() {
                if place > 0 {
                    bytes.push(b',');
                }
                cell.put(bytes);
            }
            bytes.push(b'\n');
        })
    }

    /// Writes the table to `out`.
    ///
    /// # Errors
    /// When the temporary file cannot be read; when `out` cannot be written, an [`std::io::Error`] is in the chain.
    pub fn write(self, out: &mut dyn Write) -> Result<()> {
        self.rows.write(out)
    }
}

/// The tables of `wanted` (of [`TABLES`]) that have rows, of the part `region` of `trace`, as of one process.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, or when a signal came (`notes`).
pub fn tables(
    trace: (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    wanted: &[&str],
) -> Result<(Exported, Vec<CsvTable>)> {
    let mut csv = Csv {
        wanted: TABLES.into_iter().filter(|name| wanted.contains(name)).collect(),
        tables: HashMap::new(),
        kernels: FxHashMap::default(),
        of_libraries: of_libraries(trace.0)?,
        statistics: HashMap::new(),
    };
    let read = records::read(trace, region, notes, &mut csv)?;
    csv.statistics()?;
    csv.agents(trace.0, &read.gpus)?;
    let tables = TABLES.into_iter().filter_map(|name| csv.tables.remove(name)).collect();
    Ok((read.exported, tables))
}

/// Ids of the names of functions that libraries have.
fn of_libraries(trace: &Connection) -> Result<FxHashSet<i64>> {
    if !has_table(trace, "ext_librarycall")? {
        return Ok(FxHashSet::default());
    }
    let names = "SELECT DISTINCT A.apiName_id FROM ext_librarycall L JOIN rocpd_api A ON A.id = L.api_ptr_id";
    let mut names = trace.prepare(names)?;
    let names = names.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

/// Durations, ns.
#[derive(Clone, Copy, Default)]
struct Durations {
    count: u64,
    sum: u128,
    squares: u128,
    least: u64,
    most: u64,
}

impl Durations {
    fn add(&mut self, (start, end): (i64, i64)) {
        let ns = end.saturating_sub(start).max(0).cast_unsigned();
        self.least = if self.count == 0 { ns } else { self.least.min(ns) };
        self.most = self.most.max(ns);
        self.count += 1;
        self.sum += u128::from(ns);
        self.squares = self.squares.saturating_add(u128::from(ns) * u128::from(ns));
    }

    fn join(&mut self, other: &Durations) {
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// Of a sample.
    fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        let scaled = match (count.checked_mul(self.squares), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square)) => squares.saturating_sub(square) as f64,
            _ => (count as f64 * self.squares as f64 - self.sum as f64 * self.sum as f64).max(0.0),
        };
        (scaled / (count as f64 * (count - 1) as f64)).sqrt()
    }

    /// Cells of a row of statistics.
    fn cells(&self, of_ns: u128) -> [String; 7] {
        let percent = if of_ns == 0 { 0.0 } else { self.sum as f64 / of_ns as f64 * 100.0 };
        [
            self.count.to_string(),
            self.sum.to_string(),
            real(self.sum as f64 / self.count.max(1) as f64),
            percentage(percent),
            self.least.to_string(),
            self.most.to_string(),
            real(self.deviation()),
        ]
    }
}

fn real(number: f64) -> String {
    if number > 0.01 { format!("{number:.6}") } else { scientific(number, 8) }
}

fn percentage(number: f64) -> String {
    match number {
        number if number >= 1.0 => format!("{number:.2}"),
        number if number > 0.01 => format!("{number:.4}"),
        number => scientific(number, 3),
    }
}

/// As C++ has it: an exponent has a sign and two digits.
fn scientific(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

struct Csv {
    wanted: FxHashSet<&'static str>,
    /// Those that have rows.
    tables: HashMap<&'static str, CsvTable>,
    /// Numbers of kernels, from 1 on, by the ids of their names.
    kernels: FxHashMap<i64, usize>,
    /// Names of functions that are no runtime's.
    of_libraries: FxHashSet<i64>,
    statistics: HashMap<Domain, HashMap<String, Durations>>,
}

impl Csv {
    fn row(&mut self, table: &'static str, cells: &[CsvCell<'_>]) -> Result<()> {
        if !self.wanted.contains(table) {
            return Ok(());
        }
        let rows = match self.tables.entry(table) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(room) => room.insert(CsvTable::new(table)?),
        };
        rows.row(cells)
    }

    fn count(&mut self, domain: Domain, name: &str, times: (i64, i64)) {
        let of_domain = self.statistics.entry(domain).or_default();
        match of_domain.get_mut(name) {
            Some(durations) => durations.add(times),
            None => of_domain.entry(name.to_string()).or_default().add(times),
        }
    }

    fn call(
        &mut self,
        (domain, table): (Domain, &'static str),
        kind: &str,
        name: &str,
        of: &TracedCall<'_>,
    ) -> Result<()> {
        self.count(domain, name, of.times);
        let mut cells = vec![CsvCell::Text(kind), CsvCell::Text(name)];
        cells.extend([of.process, of.thread, of.id, of.times.0, of.times.1].map(CsvCell::Number));
        self.row(table, &cells)
    }

    /// By what took longest: names of each domain, then the domains.
    fn statistics(&mut self) -> Result<()> {
        let mut domains: Vec<(Durations, &str)> = Vec::new();
        for (domain, shown, table) in DOMAINS {
            let Some(of_domain) = self.statistics.remove(&domain) else { continue };
            let mut rows: Vec<(String, Durations)> = of_domain.into_iter().collect();
            rows.sort_by(|(name, one), (other_name, other)| {
                (Reverse(one.sum), name).cmp(&(Reverse(other.sum), other_name))
            });
            let mut all = Durations::default();
            rows.iter().for_each(|(_, durations)| all.join(durations));
            for (name, durations) in &rows {
                self.statistics_row(table, name, durations, all.sum)?;
            }
            domains.push((all, shown));
        }
        domains.sort_by_key(|(durations, _)| Reverse(durations.sum));
        let all = domains.iter().map(|(durations, _)| durations.sum).sum();
        domains
            .iter()
            .try_for_each(|(durations, name)| self.statistics_row("domain_stats", name, durations, all))
    }

    fn statistics_row(
        &mut self,
        table: &'static str,
        name: &str,
        of: &Durations,
        all_ns: u128,
    ) -> Result<()> {
        let numbers = of.cells(all_ns);
        let mut cells = vec![CsvCell::Text(name)];
        cells.extend(numbers.iter().map(|number| CsvCell::Rounded(number)));
        self.row(table, &cells)
    }

    /// The CPUs as one agent, then each GPU.
    fn agents(&mut self, trace: &Connection, gpus: &[i64]) -> Result<()> {
        let known = rpd_schema::gpus(trace)?;
        let of_gpus = gpus.iter().map(|gpu| (agent(*gpu), Some(*gpu)));
        for (number, gpu) in std::iter::once((HOST, None)).chain(of_gpus) {
            let info = known.iter().find(|info| Some(i64::from(info.gpu)) == gpu);
            let fact = |key| info.and_then(|info| info.get(key)).unwrap_or("");
            let (target, product) = (fact(session_fact::GPU_TARGET), fact(session_fact::GPU_NAME));
            let (domain, location) = pci(fact(session_fact::GPU_BDF)).unwrap_or((0, 0));
            let version = target_version(target);
            let cells: Vec<CsvCell<'_>> = AGENT
                .iter()
                .map(|column| match *column {
                    "Node_Id" | "Logical_Node_Id" => CsvCell::Number(number),
                    "Agent_Type" => CsvCell::Text(if gpu.is_some() { "GPU" } else { "CPU" }),
                    "Gfx_Target_Version" => CsvCell::Number(i64::from(version.unwrap_or(0))),
                    // AMD's.
                    "Vendor_Id" if version.is_some() => CsvCell::Number(4098),
                    "Location_Id" => CsvCell::Number(i64::from(location)),
                    "Domain" => CsvCell::Number(i64::from(domain)),
                    "Name" => CsvCell::Text(if target.is_empty() { product } else { target }),
                    "Vendor_Name" if gpu.is_none() => CsvCell::Text("CPU"),
                    "Vendor_Name" if version.is_some() => CsvCell::Text("AMD"),
                    "Product_Name" => CsvCell::Text(product),
                    "Vendor_Name" | "Model_Name" => CsvCell::Text(""),
                    _ => CsvCell::Number(0),
                })
                .collect();
            self.row("agent_info", &cells)?;
        }
        Ok(())
    }
}

/// gfx90a is 90010.
fn target_version(target: &str) -> Option<u32> {
    let digits = target.strip_prefix("gfx")?;
    let digits = digits.split(':').next()?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let mut rest = rest.chars().map(|digit| digit.to_digit(16));
    let (minor, stepping) = (rest.next()??, rest.next()??);
    major.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(100 * minor + stepping)
}

/// The domain, and the place in it, of a PCI address: 0000:c3:00.0 is (0, 49920).
fn pci(address: &str) -> Option<(u32, u32)> {
    let (rest, function) = address.rsplit_once('.')?;
    let mut parts = rest.split(':').map(|part| u32::from_str_radix(part, 16).ok());
    let (domain, bus, device) = (parts.next()??, parts.next()??, parts.next()??);
    Some((domain, (bus & 0xff) << 8 | (device & 0x1f) << 3 | function.parse::<u32>().ok()? & 7))
}

/// How an agent is called.
fn shown(agent: i64) -> String {
    format!("Agent {agent}")
}

impl Rocprofv3Format for Csv {
    fn dispatch(&mut self, of: &Dispatch<'_>) -> Result<()> {
        let next = self.kernels.len() + 1;
        let kernel = *self.kernels.entry(of.kernel.0).or_insert(next);
        self.count(Domain::Kernels, of.kernel.1, of.times);
        let lds = of.launch.lds.unwrap_or(0).max(0);
        let lds = lds.saturating_add(LDS_PIECE - 1) / LDS_PIECE * LDS_PIECE;
        let [x, y, z] = of.workgroup;
        let [grid_x, grid_y, grid_z] = of.grid;
        let launch =
            [of.launch.scratch, of.launch.vgprs, Some(0), of.launch.sgprs].map(|number| number.unwrap_or(0));
        let agent = shown(of.agent);
        let mut cells = vec![CsvCell::Text("KERNEL_DISPATCH"), CsvCell::Text(&agent)];
        cells.extend([of.queue, of.stream, of.thread, of.id, kernel as i64].map(CsvCell::Number));
        cells.push(CsvCell::Text(of.kernel.1));
        cells.extend([of.call, of.times.0, of.times.1, lds].map(CsvCell::Number));
        cells.extend(launch.map(CsvCell::Number));
        cells.extend([x, y, z, grid_x, grid_y, grid_z].map(CsvCell::Number));
        self.row("kernel_trace", &cells)
    }

    fn copy(&mut self, of: &Copied) -> Result<()> {
        let direction = COPIES[of.direction];
        self.count(Domain::Copies, direction, of.times);
        let (from, to) = (shown(of.from), shown(of.to));
        let mut cells =
            vec![CsvCell::Text("MEMORY_COPY"), CsvCell::Text(direction), CsvCell::Number(of.stream)];
        cells.extend([CsvCell::Text(&from), CsvCell::Text(&to)]);
        cells.extend([of.call, of.times.0, of.times.1].map(CsvCell::Number));
        self.row("memory_copy_trace", &cells)
    }

    fn call(&mut self, of: &TracedCall<'_>) -> Result<()> {
        let (id, name) = of.function;
        let begins = |begin| name.starts_with(begin);
        let (place, kind) = match () {
            () if begins("hsa_amd_") => ((Domain::Hsa, "hsa_api_trace"), "HSA_AMD_EXT_API"),
            () if begins("hsa_") => ((Domain::Hsa, "hsa_api_trace"), "HSA_CORE_API"),
            () if begins("nccl") => ((Domain::Rccl, "rccl_api_trace"), "RCCL_API"),
            // rocprofv3 traces no other library.
            () if self.of_libraries.contains(&id) => return Ok(()),
            () if begins("__hip") => ((Domain::Hip, "hip_api_trace"), "HIP_COMPILER_API"),
            () => ((Domain::Hip, "hip_api_trace"), "HIP_RUNTIME_API"),
        };
        self.call(place, kind, name, of)
    }

    fn marker(&mut self, of: &TracedCall<'_>, message: &str) -> Result<()> {
        self.call((Domain::Markers, "marker_api_trace"), "MARKER_CORE_API", message, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_rocprofv3_rounds_them() {
        let mut durations = Durations::default();
        for ns in [1000, 2000, 6000] {
            durations.add((5, 5 + ns));
        }
        let cells = durations.cells(9_000_000);
        assert_eq!(cells, ["3", "9000", "3000.000000", "0.1000", "1000", "6000", "2645.751311"]);
        assert_eq!(
            Durations { count: 1, sum: 0, ..Durations::default() }.cells(0),
            ["1", "0", "0.00000000e+00", "0.000e+00", "0", "0", "0.00000000e+00"]
        );
        assert_eq!(
            [percentage(99.999), percentage(0.005), scientific(1.5e-12, 3)],
            ["100.00", "5.000e-03", "1.500e-12"]
        );
    }

    #[test]
    fn a_text_that_is_a_number_has_quotes() {
        let mut table = CsvTable::new("domain_stats").unwrap();
        let texts = ["7", "-inf", "", "a \"b\", c"].map(CsvCell::Text);
        let numbers = [CsvCell::Number(i64::MIN), CsvCell::Rounded("1.50")];
        table.row(&[&texts[..], &numbers[..]].concat()).unwrap();
        let mut written = Vec::new();
        table.write(&mut written).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap().lines().collect::<Vec<_>>(),
            [
                "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"",
                "\"7\",\"'-inf\",\"\",\"a \"\"b\"\", c\",-9223372036854775808,1.50"
            ]
        );
    }

    #[test]
    fn agents_have_versions_and_places() {
        assert_eq!(
            ["gfx906", "gfx90a:sramecc+", "gfx1100", "sm_90", "gfx", ""].map(target_version),
            [Some(90_006), Some(90_010), Some(110_000), None, None, None]
        );
        assert_eq!(
            [pci("0000:c3:00.0"), pci("0001:04:1f.3"), pci("")],
            [Some((0, 0xc300)), Some((1, 0x4fb)), None]
        );
    }
}
