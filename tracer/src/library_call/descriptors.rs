//! What calls are passed by descriptors: sizes and types of matrices and products (hipBLASLt, cuBLASLt), of tensors and convolutions (MIOpen, cuDNN).
//!
//! Noted when a descriptor is made or changed, whether or not anything is recorded, and asked at the end of a call that uses it: the next
//! descriptor may have the same address. What is asked becomes words behind the call's arguments, and text in the file.

use std::fmt::Write;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use rustc_hash::FxHashMap;

use super::arguments::{self, Given};
use super::description::{self, Library, LibraryArgument, LibraryFunction};

/// Descriptors are spread over so many locks.
const SHARDS: usize = 16;
/// Descriptors that one of them remembers: a program that makes more destroys none.
const MOST: usize = 4096;
/// How often a lock that somebody else has is tried.
const TRIES: u32 = 20_000;
/// A lock that could not be had so often in a row stays taken: a forked child has inherited it so.
const STUCK: u32 = 16;
/// Dimensions of a tensor that are kept.
const DIMENSIONS: usize = 5;
/// Of a convolution, in space.
const SPATIAL: usize = 3;

/// Descriptors by address, each with the number of misses when it was noted.
type Known = Option<FxHashMap<u64, (u32, Descriptor)>>;

/// Descriptors, and the lock that they share.
struct Shard {
    known: Mutex<Known>,
    /// How often something could not be noted: what was noted before may be another descriptor by now, and is unknown.
    missed: AtomicU32,
    /// How often in a row.
    missed_in_a_row: AtomicU32,
}

static SHARDS_OF_ADDRESSES: [Shard; SHARDS] = [const {
    Shard { known: Mutex::new(None), missed: AtomicU32::new(0), missed_in_a_row: AtomicU32::new(0) }
}; SHARDS];

/// What is known of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Descriptor {
    Layout(Layout),
    Product(Product),
    Tensor(Tensor),
    Convolution(Convolution),
}

/// A matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layout {
    number_type: i32,
    rows: u64,
    columns: u64,
    leading: i64,
    batches: u64,
    stride: i64,
    /// Its elements do not lie column by column.
    has_other_order: bool,
}

/// A product of matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Product {
    compute: i32,
    scale: i32,
    /// Of A and B; nothing where they are taken as they are.
    operations: [Option<i32>; 2],
    epilogue: u64,
    has_scalars_on_device: bool,
    /// Something else was set, which changes what is computed: scales of the operands, the types in which they are multiplied.
    has_others: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tensor {
    number_type: i32,
    lengths: [u64; DIMENSIONS],
    order: Order,
}

/// How the dimensions of a tensor, which are always given as N, C and those of space, lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// The last of space are neighbours.
    #[default]
    ChannelsFirst,
    ChannelsLast,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Convolution {
    mode: i32,
    /// Dimensions in space.
    dimensions: u64,
    pads: [u64; SPATIAL],
    strides: [u64; SPATIAL],
    dilations: [u64; SPATIAL],
    groups: u64,
}

/// What a call is about, of which its descriptors say more: places of its arguments, because each call looks them up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LibraryProblem {
    /// The product, the layouts of A, B, C and D, then alpha and beta.
    Product([usize; 7]),
    /// Input, filter, output and the convolution.
    Convolution([usize; 4]),
}

impl LibraryProblem {
    /// That of the function `name`.
    pub(super) fn of(name: &str, arguments: &[LibraryArgument]) -> Option<LibraryProblem> {
        let place = |names: &[&str]| {
            arguments.iter().position(|argument| names.contains(&argument.name) && !argument.hidden)
        };
        let layout = |name| place(&[name]);
        match name {
            "hipblasLtMatmul" | "cublasLtMatmul" => Some(LibraryProblem::Product([
                place(&["matmulDesc", "computeDesc"])?,
                layout("Adesc")?,
                layout("Bdesc")?,
                layout("Cdesc")?,
                layout("Ddesc")?,
                place(&["alpha"])?,
                place(&["beta"])?,
            ])),
            _ if name.ends_with("CompileSolution") => None,
            _ if [
                "miopenConvolution",
                "miopenFindConvolution",
                "cudnnConvolution",
                "cudnnFindConvolution",
            ]
            .iter()
            .any(|begin| name.starts_with(begin)) =>
            {
                Some(LibraryProblem::Convolution([
                    place(&["xDesc", "dxDesc"])?,
                    place(&["wDesc", "dwDesc"])?,
                    place(&["yDesc", "dyDesc"])?,
                    place(&["convDesc"])?,
                ]))
            }
            _ => None,
        }
    }
}

impl Shard {
    fn of(address: u64) -> &'static Shard {
        &SHARDS_OF_ADDRESSES[(address >> 4) as usize % SHARDS]
    }

    /// Nothing where somebody keeps the lock.
    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        if self.missed_in_a_row.load(Ordering::Relaxed) >= STUCK {
            return None;
        }
        for _ in 0..TRIES {
            let guard = match self.known.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    hint::spin_loop();
                    continue;
                }
            };
            self.missed_in_a_row.store(0, Ordering::Relaxed);
            return Some(guard);
        }
        self.missed_in_a_row.fetch_add(1, Ordering::Relaxed);
        None
    }
}

fn known(address: u64) -> Option<Descriptor> {
    let shard = Shard::of(address);
    let (missed, descriptor) = shard.lock()?.as_ref()?.get(&address).copied()?;
    (missed == shard.missed.load(Ordering::Relaxed)).then_some(descriptor)
}

/// Changes what is known of the descriptor there.
fn change(address: u64, change: impl FnOnce(Option<Descriptor>) -> Option<Descriptor>) {
    let shard = Shard::of(address);
    let Some(mut known) = shard.lock() else {
        shard.missed.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let missed = shard.missed.load(Ordering::Relaxed);
    let known = known.get_or_insert_default();
    let before = known.get(&address).filter(|(of, _)| *of == missed).map(|(_, descriptor)| *descriptor);
    match change(before) {
        Some(descriptor) => {
            if known.len() == MOST && !known.contains_key(&address) {
                known.clear();
            }
            known.insert(address, (missed, descriptor));
        }
        None => {
            known.remove(&address);
        }
    }
}

/// A call of `function`, which is noted and not recorded, has succeeded with these arguments.
pub(super) fn note(function: &LibraryFunction, kept: &[u8]) {
    let given = Given { function, kept };
    let Some(address) = given.first_handle() else { return };
    let number = |name| given.number(name).unwrap_or(0);
    let enumerated = |name| given.number(name).map_or(0, |value| value as i32);
    let ends = |end| function.name.ends_with(end);
    let begins = |begin| function.name.starts_with(begin);
    match () {
        // What is made in the program's own memory, by Init, goes without a word.
        () if ends("Destroy")
            || ends("Init_internal")
            || begins("miopenDestroy")
            || begins("cudnnDestroy") =>
        {
            change(address, |_| None);
        }
        () if ends("MatrixLayoutCreate") => {
            let layout = Layout {
                number_type: enumerated("type"),
                rows: number("rows"),
                columns: number("cols"),
                leading: number("ld") as i64,
                batches: 1,
                ..Layout::default()
            };
            change(address, |_| Some(Descriptor::Layout(layout)));
        }
        () if ends("MatmulDescCreate") => {
            let (compute, scale) = (enumerated("computeType"), enumerated("scaleType"));
            let product = Product { compute, scale, epilogue: DEFAULT_EPILOGUE, ..Product::default() };
            change(address, |_| Some(Descriptor::Product(product)));
        }
        () if ends("SetAttribute") => {
            let set = given.enumerated("attr").zip(given.pointed("buf"));
            // One that cannot be read may have changed anything.
            change(address, |known| set.and_then(|(attribute, value)| Some(known?.with(attribute, value))));
        }
        () if ends("SetConvolutionGroupCount") => {
            let groups = number("groupCount");
            change(address, |known| {
                Some(Descriptor::Convolution(Convolution { groups, ..Convolution::known(known) }))
            });
        }
        () if begins("miopenInitConvolution") => {
            let convolution = Convolution::made(&given);
            change(address, |_| Some(Descriptor::Convolution(convolution)));
        }
        // Of cuDNN, what is set goes over what was there, of which the groups stay.
        () if begins("cudnnSetConvolution") => {
            let mut convolution = Convolution::made(&given);
            change(address, |known| {
                convolution.groups = Convolution::known(known).groups;
                Some(Descriptor::Convolution(convolution))
            });
        }
        () => {
            let tensor = Tensor::made(&given);
            change(address, |_| tensor.map(Descriptor::Tensor));
        }
    }
}

impl Descriptor {
    /// With that attribute: the names of hipBLASLt's and cuBLASLt's end alike.
    fn with(mut self, attribute: &str, value: u64) -> Descriptor {
        let ends = |end| attribute.ends_with(end);
        match &mut self {
            Descriptor::Layout(layout) => match () {
                () if ends("_LAYOUT_TYPE") => layout.number_type = value as i32,
                () if ends("_LAYOUT_ROWS") => layout.rows = value,
                () if ends("_LAYOUT_COLS") => layout.columns = value,
                () if ends("_LAYOUT_LD") => layout.leading = value as i64,
                () if ends("_LAYOUT_BATCH_COUNT") => layout.batches = u64::from(value as u32),
                () if ends("_LAYOUT_ORDER") => layout.has_other_order = value as i32 != 0,
                () if ends("_LAYOUT_STRIDED_BATCH_OFFSET") => layout.stride = value as i64,
                () => {}
            },
            Descriptor::Product(product) => match () {
                () if ends("_DESC_TRANSA") => product.operations[0] = Some(value as i32),
                () if ends("_DESC_TRANSB") => product.operations[1] = Some(value as i32),
                () if ends("_DESC_EPILOGUE") => product.epilogue = u64::from(value as u32),
                () if ends("_DESC_COMPUTE_TYPE") => product.compute = value as i32,
                () if ends("_DESC_SCALE_TYPE") => product.scale = value as i32,
                () if ends("_DESC_POINTER_MODE") => product.has_scalars_on_device = value as i32 != 0,
                () if ends("_DESC_BIAS_POINTER") => {}
                () => product.has_others = true,
            },
            Descriptor::Tensor(_) | Descriptor::Convolution(_) => {}
        }
        self
    }
}

impl Tensor {
    /// By one of the functions that set one.
    fn made(given: &Given<'_>) -> Option<Tensor> {
        let mut lengths = [0; DIMENSIONS];
        let each = |names: [&str; 4]| names.map(|name| given.number(name));
        let list =
            |names: &[&str]| names.iter().map(|name| given.numbers(name)).find(|list| !list.is_empty());
        // Of a filter of cuDNN the first is k.
        let [n, c, h, w] = each(["n", "c", "h", "w"]);
        let (found, strides) = match [n.or_else(|| given.number("k")), c, h, w] {
            [Some(n), Some(c), Some(h), Some(w)] => {
                let strides = each(["nStride", "cStride", "hStride", "wStride"]);
                (vec![n, c, h, w], strides.into_iter().flatten().collect())
            }
            // Of more dimensions than are kept nothing is known.
            _ if given.number("nbDims").is_some_and(|dimensions| dimensions > DIMENSIONS as u64) => {
                return None;
            }
            _ => (
                list(&["lens", "dimsA", "dimA", "filterDimA"])?,
                list(&["stridesA", "strideA"]).unwrap_or_default(),
            ),
        };
        let order = match given.enumerated("tensorLayout").or_else(|| given.enumerated("format")) {
            _ if strides.len() == found.len() => Order::of(&found, &strides),
            None => Order::ChannelsFirst,
            Some("miopenTensorNCHW" | "miopenTensorNCDHW" | "CUDNN_TENSOR_NCHW") => Order::ChannelsFirst,
            Some("miopenTensorNHWC" | "miopenTensorNDHWC" | "CUDNN_TENSOR_NHWC") => Order::ChannelsLast,
            Some(_) => Order::Other,
        };
        lengths.get_mut(..found.len())?.copy_from_slice(&found);
        (found.len() >= 3).then_some(Tensor { number_type: given.number("dataType")? as i32, lengths, order })
    }
}

impl Order {
    /// By the distances of neighbours in each dimension.
    fn of(lengths: &[u64], strides: &[u64]) -> Order {
        let Some(last) = lengths.len().checked_sub(1).filter(|last| *last >= 2) else { return Order::Other };
        match () {
            () if is_packed(lengths, strides, (0..=last).rev()) => Order::ChannelsFirst,
            () if is_packed(lengths, strides, [1].into_iter().chain((2..=last).rev()).chain([0])) => {
                Order::ChannelsLast
            }
            () => Order::Other,
        }
    }
}

/// Whether each dimension begins where the one before it ends, in the order of `places`.
fn is_packed(lengths: &[u64], strides: &[u64], mut places: impl Iterator<Item = usize>) -> bool {
    let mut next = 1_u64;
    places.all(|place| {
        // What is there once has no neighbour.
        let fits = lengths[place] <= 1 || strides[place] == next;
        next = next.saturating_mul(lengths[place]);
        fits
    })
}

impl Convolution {
    /// What a descriptor was that is a convolution's; of a new one there are its groups alone.
    fn known(descriptor: Option<Descriptor>) -> Convolution {
        match descriptor {
            Some(Descriptor::Convolution(convolution)) => convolution,
            _ => Convolution { groups: 1, ..Convolution::default() },
        }
    }

    fn made(given: &Given<'_>) -> Convolution {
        let number = |names: [&str; 2]| names.into_iter().find_map(|name| given.number(name));
        // MIOpen's names and cuDNN's.
        let spatial = |lists: [&str; 2], height: [&str; 2], width: [&str; 2]| {
            let mut all = [0; SPATIAL];
            let found = lists.into_iter().map(|list| given.numbers(list)).find(|found| !found.is_empty());
            let found =
                found.unwrap_or_else(|| [number(height), number(width)].into_iter().flatten().collect());
            all.iter_mut().zip(found).for_each(|(place, number)| *place = number);
            all
        };
        Convolution {
            mode: number(["c_mode", "mode"]).unwrap_or(0) as i32,
            dimensions: number(["spatialDim", "arrayLength"]).unwrap_or(2),
            pads: spatial(["padA"; 2], ["pad_h"; 2], ["pad_w"; 2]),
            strides: spatial(["strideA", "filterStrideA"], ["stride_h", "u"], ["stride_w", "v"]),
            dilations: spatial(["dilationA"; 2], ["dilation_h"; 2], ["dilation_w"; 2]),
            groups: 1,
        }
    }
}

/// Words of a product behind a call's arguments.
const PRODUCT_WORDS: usize = 25;
/// Of a convolution.
const CONVOLUTION_WORDS: usize = 4 + 3 * (DIMENSIONS + 1) + 3 * SPATIAL;
/// The more of both.
pub(super) const MOST_WORDS: usize =
    if PRODUCT_WORDS > CONVOLUTION_WORDS { PRODUCT_WORDS } else { CONVOLUTION_WORDS };
/// What says that an operation is not set.
const AS_IT_IS: u64 = u64::MAX;
/// Nothing is done with the product.
const DEFAULT_EPILOGUE: u64 = 1;

/// Hands `put` the words that the descriptors of a call add to its arguments; nothing where one is not known.
pub(super) fn keep(function: &LibraryFunction, kept: &[u8], put: &mut dyn FnMut(u64)) {
    let given = Given { function, kept };
    match function.subject {
        Some(LibraryProblem::Product(places)) => {
            if let Some(words) = product_words(&given, places) {
                words.into_iter().for_each(put);
            }
        }
        Some(LibraryProblem::Convolution(places)) => {
            if let Some(words) = convolution_words(&given, places) {
                words.into_iter().for_each(put);
            }
        }
        None => {}
    }
}

/// CUDA_R_16F and HIP_R_16F.
const R_16F: i32 = 2;
/// CUDA_R_32F and HIP_R_32F.
const R_32F: i32 = 0;
/// CUDA_R_64F and HIP_R_64F.
const R_64F: i32 = 1;

fn product_words(given: &Given<'_>, places: [usize; 7]) -> Option<[u64; PRODUCT_WORDS]> {
    let [product, a, b, c, d, alpha, beta] = places.map(|place| given.at(place));
    let Descriptor::Product(product) = known(product?)? else { return None };
    let layout = |address: u64| match known(address)? {
        Descriptor::Layout(layout) => Some(layout),
        _ => None,
    };
    let of_c = c.filter(|c| *c != 0 && Some(*c) != d);
    let (a, b, d) = (layout(a?)?, layout(b?)?, layout(d?)?);
    let c = match of_c {
        Some(address) => layout(address)?,
        None => d,
    };
    let has_others = product.has_others || [a, b, c, d].iter().any(|layout| layout.has_other_order);
    let size = match product.scale {
        R_16F => 2,
        R_32F => 4,
        R_64F => 8,
        _ => 0,
    };
    let scalars = [alpha, beta].map(|address| {
        let address = address.filter(|_| size > 0 && !product.has_scalars_on_device)?;
        arguments::real(address, size)
    });
    let [alpha, beta] = scalars.map(|scalar| scalar.unwrap_or(f64::NAN).to_bits());
    let operation = |operation: Option<i32>| operation.map_or(AS_IT_IS, |operation| operation as u32 as u64);
    let types = [a, b, c, d].map(|layout| layout.number_type as u32 as u64);
    let leading = [a, b, c, d].map(|layout| layout.leading as u64);
    let strides = [a, b, c, d].map(|layout| layout.stride as u64);
    let mut words = [0; PRODUCT_WORDS];
    words[..4].copy_from_slice(&[d.rows, d.columns, a.rows, a.columns]);
    words[4..6].copy_from_slice(&product.operations.map(operation));
    words[6..10].copy_from_slice(&types);
    words[10..14].copy_from_slice(&leading);
    words[14..18].copy_from_slice(&strides);
    words[18..].copy_from_slice(&[
        d.batches,
        product.compute as u32 as u64,
        product.scale as u32 as u64,
        product.epilogue,
        alpha,
        beta,
        has_others.into(),
    ]);
    Some(words)
}

fn convolution_words(given: &Given<'_>, places: [usize; 4]) -> Option<[u64; CONVOLUTION_WORDS]> {
    let [input, filter, output, convolution] = places.map(|place| given.at(place));
    let tensor = |address: Option<u64>| match known(address?)? {
        Descriptor::Tensor(tensor) => Some(tensor),
        _ => None,
    };
    let tensors = [tensor(input)?, tensor(filter)?, tensor(output)?];
    let Descriptor::Convolution(convolution) = known(convolution?)? else { return None };
    if !(1..=SPATIAL as u64).contains(&convolution.dimensions) {
        return None;
    }
    let mut words = [0; CONVOLUTION_WORDS];
    let mut into = words.iter_mut();
    let mut put = |word: u64| into.next().map(|place| *place = word);
    put(tensors[0].number_type as u32 as u64);
    put(convolution.mode as u32 as u64);
    put(convolution.dimensions);
    put(convolution.groups);
    for tensor in tensors {
        put(tensor.order as u64);
        tensor.lengths.into_iter().for_each(|length| {
            put(length);
        });
    }
    for list in [convolution.pads, convolution.strides, convolution.dilations] {
        list.into_iter().for_each(|number| {
            put(number);
        });
    }
    Some(words)
}

/// What words that [`keep`] has kept say.
pub(super) struct Said {
    /// Further arguments, each with a separator in front.
    pub(super) text: String,
    /// alpha and beta of a product, where their values are known.
    scalars: [Option<f64>; 2],
}

impl Said {
    /// Of a call of `function`; `words` are those behind its arguments.
    pub(super) fn by(function: &LibraryFunction, words: &[u64]) -> Option<Said> {
        match function.subject? {
            LibraryProblem::Product(_) => Said::by_product(function, words.try_into().ok()?),
            LibraryProblem::Convolution(_) => Said::by_convolution(function.library, words.try_into().ok()?),
        }
    }

    /// The value of the argument called `name`, which is passed by address.
    pub(super) fn scalar(&self, name: &str) -> Option<f64> {
        match name {
            "alpha" => self.scalars[0],
            "beta" => self.scalars[1],
            _ => None,
        }
    }

    fn by_product(function: &LibraryFunction, words: &[u64; PRODUCT_WORDS]) -> Option<Said> {
        let names = Names::of(function.library)?;
        let [rows, columns, rows_of_a, columns_of_a, ..] = words;
        let operations = &words[4..6];
        let is_taken_as_it_is =
            operations[0] == AS_IT_IS || named(names.operation, operations[0]) == names.as_it_is;
        let depth = if is_taken_as_it_is { columns_of_a } else { rows_of_a };
        let mut text = String::new();
        let mut say = |key: &str, value: &dyn std::fmt::Display| {
            // Writing to a String cannot fail.
            let _ = write!(text, " | {key}={value}");
        };
        for (key, operation) in ["transA", "transB"].into_iter().zip(operations) {
            match *operation {
                AS_IT_IS => say(key, &names.as_it_is),
                operation => say(key, &named(names.operation, operation)),
            }
        }
        for (key, number) in [("m", rows), ("n", columns), ("k", depth)] {
            say(key, number);
        }
        for (key, number_type) in ["a_type", "b_type", "c_type", "d_type"].into_iter().zip(&words[6..10]) {
            say(key, &named(names.number, *number_type));
        }
        say("compute_type", &named(names.compute, words[19]));
        say("scale_type", &named(names.number, words[20]));
        for (key, leading) in ["lda", "ldb", "ldc", "ldd"].into_iter().zip(&words[10..14]) {
            say(key, &(*leading as i64));
        }
        if words[18] != 1 {
            say("batch_count", &words[18]);
            for (key, stride) in
                ["stride_a", "stride_b", "stride_c", "stride_d"].into_iter().zip(&words[14..18])
            {
                say(key, &(*stride as i64));
            }
        }
        if words[21] != DEFAULT_EPILOGUE {
            say("epilogue", &words[21]);
        }
        if words[24] != 0 {
            say("further_attributes", &"set");
        }
        let scalar = |word: u64| Some(f64::from_bits(word)).filter(|value| !value.is_nan());
        Some(Said { text, scalars: [scalar(words[22]), scalar(words[23])] })
    }

    fn by_convolution(library: Library, words: &[u64; CONVOLUTION_WORDS]) -> Option<Said> {
        let description = description::get();
        let (types, modes) = match library {
            Library::CuDnn => ("cudnnDataType_t", "cudnnConvolutionMode_t"),
            _ => ("miopenDataType_t", "miopenConvolutionMode_t"),
        };
        let [number_type, mode, dimensions, groups, rest @ ..] = words;
        let (tensors, spatial) = rest.split_at(3 * (DIMENSIONS + 1));
        let list = |numbers: &[u64]| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            numbers.join(",")
        };
        let mut text = String::new();
        let mut say = |key: &str, value: &str| {
            let _ = write!(text, " | {key}={value}");
        };
        say("data_type", &named(description.enumeration(types)?, *number_type));
        say("mode", &named(description.enumeration(modes)?, *mode));
        let shown = 2 + (*dimensions as usize).min(SPATIAL);
        for (key, tensor) in ["in", "filter", "out"].into_iter().zip(tensors.chunks(DIMENSIONS + 1)) {
            say(key, &list(&tensor[1..=shown]));
            let order = match tensor[0] {
                order if order == Order::ChannelsLast as u64 => "channels_last",
                order if order == Order::Other as u64 => "other",
                _ => continue,
            };
            say(&format!("{key}_layout"), order);
        }
        for (key, numbers) in ["pad", "stride", "dilation"].into_iter().zip(spatial.chunks(SPATIAL)) {
            say(key, &list(&numbers[..shown - 2]));
        }
        say("groups", &groups.to_string());
        Some(Said { text, scalars: [None; 2] })
    }
}

/// The name of an enumeration's value, or its number.
fn named(enumeration: usize, value: u64) -> String {
    let value = value as i32;
    description::get().value(enumeration, value).map_or_else(|| value.to_string(), str::to_string)
}

/// Enumerations of a library, and what its value for a matrix that is taken as it is is called.
struct Names {
    operation: usize,
    number: usize,
    compute: usize,
    as_it_is: &'static str,
}

impl Names {
    fn of(library: Library) -> Option<Names> {
        let description = description::get();
        let of = |names: [&str; 3], as_it_is| {
            let [operation, number, compute] = names.map(|name| description.enumeration(name));
            Some(Names { operation: operation?, number: number?, compute: compute?, as_it_is })
        };
        match library {
            Library::HipBlasLt => {
                of(["hipblasOperation_t", "hipDataType", "hipblasComputeType_t"], "HIPBLAS_OP_N")
            }
            Library::CuBlasLt => {
                of(["cublasOperation_t", "cudaDataType", "cublasComputeType_t"], "CUBLAS_OP_N")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_tensors_are_those_of_their_strides() {
        let of = |strides: &[u64]| Order::of(&[2, 3, 8, 16], strides);
        assert_eq!(of(&[384, 128, 16, 1]), Order::ChannelsFirst);
        assert_eq!(of(&[384, 1, 48, 3]), Order::ChannelsLast);
        assert_eq!(of(&[400, 128, 16, 1]), Order::Other, "rows with room between them");
        assert_eq!(Order::of(&[1, 1, 8, 8], &[7, 9, 8, 1]), Order::ChannelsFirst, "one image of one channel");
        assert_eq!(Order::of(&[4], &[1]), Order::Other);
    }

    #[test]
    fn a_descriptor_changes_and_goes() {
        let layout = |rows| Descriptor::Layout(Layout { rows, ..Layout::default() });
        change(0x7010, |_| Some(layout(1)));
        assert_eq!(known(0x7010), Some(layout(1)));
        change(0x7010, |known| Some(known?.with("HIPBLASLT_MATRIX_LAYOUT_ROWS", 5)));
        assert_eq!(known(0x7010), Some(layout(5)));
        change(0x7010, |_| None);
        assert_eq!(known(0x7010), None);
        change(0x7020, |known| Some(known?.with("HIPBLASLT_MATRIX_LAYOUT_ROWS", 5)));
        assert_eq!(known(0x7020), None, "one that was never made");
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let address = |number: u64| (number * SHARDS as u64 + 7) << 4;
        for number in 0..=MOST as u64 {
            change(address(number), |_| Some(Descriptor::Tensor(Tensor::default())));
        }
        assert_eq!(known(address(0)), None);
        assert!(known(address(MOST as u64)).is_some());
    }
}
