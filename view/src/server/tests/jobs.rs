//! The ranks of a dataset: the overview, and each rank as a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Instant;

use rpd_postprocess::dataset::{AddOptions, add};
use rpd_postprocess::notes::SharedNotes;
use serde_json::{Value, json};

use super::super::jobs::{self, ABANDONED, DatasetServer, Jobs, OpenRank, ServingDataset};
use super::*;
use crate::overview::PARTS;

/// ns since 1970 less those of the hosts' clocks.
const CLOCK: i64 = 1_700_000_000_000_000_000;

/// A rank's operations: GPU, start and end on the clock of its host.
type Ops<'a> = &'a [(i64, i64, i64)];

/// A dataset in a directory with this name, beside the traces it is of.
struct Dataset(TempDir, &'static str);

impl Dataset {
    fn new() -> Dataset {
        Dataset::named("d")
    }

    fn named(name: &'static str) -> Dataset {
        Dataset(TempDir::new().unwrap(), name)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join(self.1)
    }

    /// Adds a rank whose clock is known where `has_clock`; each operation has a call that begins 5 ns before it.
    fn add(&self, job: &str, rank: i64, ops: Ops<'_>, has_clock: bool, slice_ns: Option<i64>) {
        let trace = self.0.path().join(format!("{job}-{rank}.rpd"));
        rpd_schema::create(&trace).unwrap();
        let mut rows = String::from(
            "PRAGMA foreign_keys = OFF; BEGIN; INSERT INTO rocpd_string (id, string) VALUES
                 (1, ''), (2, 'KernelExecution'), (3, 'Barrier'), (4, 'gemm'), (5, 'hipLaunchKernel');",
        );
        for (id, (gpu, start, end)) in (1..).zip(ops) {
            // On GPU 9 everything waits.
            let kind = if *gpu == 9 { 3 } else { 2 };
            rows += &format!(
                "INSERT INTO rocpd_op VALUES ({id}, {gpu}, 0, {id}, '', {start}, {end}, 4, {kind});
                 INSERT INTO rocpd_api VALUES ({id}, 7, 7, {0}, {0} + 2, 5, 1);
                 INSERT INTO rocpd_api_ops VALUES ({id}, {id}, {id});",
                start - 5
            );
        }
        for (key, value) in [("host", "host".to_string()), ("pid", (100 + rank).to_string())] {
            rows +=
                &format!("INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::{key}', '{value}');");
        }
        if has_clock {
            rows += &format!(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::boot_id', 'b{job}'),
                     ('session::0::start_monotonic_ns', '0'), ('session::0::start_realtime_ns', '{CLOCK}');"
            );
        } else {
            rows += &format!(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::boot_id', 'silent{job}{rank}');"
            );
        }
        rows += "COMMIT";
        Connection::open(&trace).unwrap().execute_batch(&rows).unwrap();
        let options = AddOptions {
            append: true,
            job: Some(job.to_string()),
            rank: Some(rank),
            slice_ns,
            ..AddOptions::default()
        };
        let notes: SharedNotes = Arc::new(Silent);
        add(&self.path(), &[trace], &options, &notes).unwrap();
    }

    /// A server whose tracks are read.
    fn served(&self, job: Option<&str>) -> ServedJobs {
        let path = self.path();
        let serving =
            ServingDataset { directory: &path, job, listen: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0 };
        let DatasetServer { jobs, .. } =
            DatasetServer::of(&serving, || Err(io::ErrorKind::NotFound.into())).unwrap();
        jobs.overview.read();
        ServedJobs(jobs)
    }

    fn refusal(&self, job: Option<&str>) -> String {
        let path = self.path();
        let serving =
            ServingDataset { directory: &path, job, listen: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0 };
        match DatasetServer::of(&serving, || Err(io::ErrorKind::NotFound.into())) {
            Ok(_) => panic!("it is served"),
            Err(error) => format!("{error:#}"),
        }
    }

    /// The files of the dataset whose paths have `part` in them.
    fn files(&self, part: &str) -> Vec<PathBuf> {
        let mut folders = vec![self.path()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path if path.to_string_lossy().contains(part) => found.push(path),
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }
}

struct ServedJobs(Arc<Jobs>);

impl Drop for ServedJobs {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ServedJobs {
    fn path(&self, path: &str) -> String {
        format!("/{}/{path}", self.0.access.token)
    }

    fn ask(&self, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", format!("127.0.0.1:{}", self.0.access.address.port()));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let answer = jobs::router(&self.0).oneshot(request).await.unwrap();
            let (parts, body) = answer.into_parts();
            (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
        })
    }

    /// A page as text.
    fn page(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        let (status, headers, body) = self.ask(&self.path(path), &[]);
        (status, headers, String::from_utf8(body).unwrap())
    }

    /// Lets the traces of the first ranks be made, which takes forever, and for which somebody waits for an hour.
    fn making(&self, ranks: usize) {
        let mut open = self.0.open.lock().unwrap();
        for rank in 0..ranks {
            let making = OpenRank::of(&Arc::default());
            *making.asked.lock().unwrap() += Duration::from_secs(3600);
            open.push(((rank, None), making));
        }
    }

    /// Which ranks are open, in the order in which they were used.
    fn open(&self) -> Vec<usize> {
        self.0.open.lock().unwrap().iter().map(|((rank, _), _)| *rank).collect()
    }

    fn get(&self, path: &str) -> StatusCode {
        self.ask(&self.path(path), &[]).0
    }

    fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.ask(&self.path(path), &[]);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// By track: GPUs, busy ns, and the shares of the parts.
    fn tracks(&self) -> BTreeMap<u32, (i32, f64, Vec<u16>)> {
        let (status, _, body) = self.ask(&self.path("utilisation?from=0"), &[]);
        assert_eq!(status, 200);
        let size = 24 + 2 * PARTS;
        assert_eq!(body.len() % size, 0);
        let track = |bytes: &[u8]| {
            let shares =
                bytes[24..].chunks(2).map(|share| u16::from_le_bytes(share.try_into().unwrap())).collect();
            let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let gpus = i32::from_le_bytes(bytes[4..8].try_into().unwrap());
            (number, (gpus, f64::from_le_bytes(bytes[8..16].try_into().unwrap()), shares))
        };
        body.chunks(size).map(track).collect()
    }

    /// The trace of a track, when all of it has been read.
    fn trace(&self, rank: &str) -> Value {
        loop {
            let found = self.json(&format!("{rank}trace"));
            if found["is_whole"] == true {
                return found;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// What the tracks should say, by looking at each ns.
fn expected(ops: Ops<'_>, begin: i64, span: i64) -> (i32, f64, Vec<u16>) {
    let mut gpus: Vec<i64> = ops.iter().map(|op| op.0).filter(|gpu| *gpu != 9).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let mut parts = vec![0.0; PARTS];
    let mut busy = 0.0;
    for gpu in &gpus {
        for ns in 0..span {
            let at = begin + ns;
            if ops.iter().any(|(of, start, end)| of == gpu && *start <= at && at < *end) {
                busy += 1.0;
                let part = (0..PARTS as i64).rfind(|part| span * part / PARTS as i64 <= ns).unwrap();
                parts[part as usize] += 1.0;
            }
        }
    }
    let share =
        |busy: &f64| (busy * PARTS as f64 * 65535.0 / (span as f64 * gpus.len() as f64)).round() as u16;
    (gpus.len() as i32, busy, parts.iter().map(share).collect())
}

#[test]
fn every_track_is_as_busy_as_its_gpus_were() {
    let dataset = Dataset::new();
    // Operations that overlap, touch, are inside of another, last for no time, and wait.
    let one: Ops<'_> =
        &[(0, 100, 900), (0, 200, 300), (0, 850, 1500), (1, 700, 700), (1, 2000, 3000), (9, 100, 5000)];
    let two: Ops<'_> = &[(0, 1005, 1006), (0, 1006, 1007), (0, 4000, 5000)];
    dataset.add("7", 0, one, true, None);
    dataset.add("7", 1, two, true, None);
    let served = dataset.served(None);
    let ranks = served.json("ranks");
    // From the first call to the last end.
    assert_eq!(
        ranks["jobs"],
        json!([{ "name": "7", "begin_ns": (CLOCK + 95).to_string(), "span_ns": 4905 }])
    );
    assert_eq!(ranks["findings"], json!([]));
    let track = |rank: i64, ops: usize, span: [i64; 2]| {
        json!({ "job": 0, "node": "host", "rank": rank, "ops": ops, "calls": ops, "parts": 1, "span": span,
            "own_clock": null, "slices": [] })
    };
    assert_eq!(ranks["tracks"], json!([track(0, 6, [0, 4905]), track(1, 3, [905, 4905])]));
    let tracks = served.tracks();
    assert_eq!(tracks[&0], expected(one, 95, 4905));
    assert_eq!(tracks[&1], expected(two, 95, 4905));
    assert_eq!(served.json("failures"), json!([]));
}

#[test]
fn a_rank_opens_as_its_trace() {
    let dataset = Dataset::new();
    dataset.add("7", 0, &[(0, 100, 900)], true, None);
    dataset.add("7", 3, &[(2, 1000, 1900), (2, 2500, 4000)], true, None);
    let before: Vec<_> =
        dataset.files("").iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    let served = dataset.served(None);
    assert_eq!(served.get("rank/1/all/"), 200);
    let trace = served.trace("rank/1/all/");
    let facts = &trace["facts"];
    assert_eq!(facts["file"], "job7-host-rank3.rpd");
    assert_eq!((&facts["ops"], &facts["calls"], &facts["first_ns"]), (&2.into(), &2.into(), &"995".into()));
    let op = served.json("rank/1/all/event?op=2");
    assert_eq!((&op["text"], &op["begin_ns"]), (&"gemm".into(), &"2500".into()));
    assert_eq!(op["links"][0]["event"], served.json("rank/1/all/event?call=2")["event"]);
    // What belongs to the page is there too, and a part of the page that waits is one that asks.
    assert_eq!(
        (served.get("rank/1/all/app.mjs"), served.get("rank/1/all/grown?version=0")),
        (StatusCode::OK, StatusCode::OK)
    );
    // A time of the job is in the middle of what is seen.
    let (status, headers, _) = served.ask(&served.path("rank/1/all/?at=2405"), &[]);
    assert_eq!((status.as_u16(), headers["location"].to_str().unwrap()), (303, "./#t=1005,2005"));
    for (path, status) in [
        ("rank/2/all/", 404),
        ("rank/x/all/", 404),
        ("rank/1/x/", 404),
        ("rank/1/all", 404),
        ("rank/1/all/../../ranks", 404),
        ("rank/1/all/%2e%2e%2f", 404),
        ("rank/9/all/trace", 404),
        ("rank/1/77/", 404),
        ("rank/1/0/", 404),
        ("rank/1/-1/trace", 404),
    ] {
        assert_eq!(served.get(path), status, "{path}");
    }
    let after: Vec<_> =
        dataset.files("").iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    assert!(before == after, "something was written into the dataset");
}

#[test]
fn only_who_knows_the_address_is_answered() {
    let dataset = Dataset::new();
    dataset.add("7", 0, &[(0, 100, 900)], true, None);
    let served = dataset.served(None);
    let port = served.0.access.address.port();
    for path in ["", "ranks", "utilisation?from=0", "dataset.mjs", "rank/0/all/", "rank/0/all/trace"] {
        assert_eq!(served.get(path), 200, "{path}");
        assert_eq!(served.ask(&format!("/{}/{path}", "0".repeat(32)), &[]).0, 404, "{path}");
        let path = served.path(path);
        assert_eq!(served.ask(&path, &[("host", &format!("evil.example:{port}"))]).0, 403, "{path}");
        assert_eq!(served.ask(&path, &[("sec-fetch-site", "cross-site")]).0, 403, "{path}");
        let (_, headers, _) = served.ask(&path, &[]);
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }
    // A page may be opened by a link, and nothing else.
    let opened = [("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(served.ask(&served.path("rank/0/all/"), &opened).0, 200);
    assert_eq!(served.ask(&served.path("ranks"), &opened).0, 403);
}

#[test]
fn a_damaged_file_is_named_and_the_other_ranks_are_shown() {
    let dataset = Dataset::new();
    for rank in 0..5 {
        dataset.add("7", rank, &[(0, 100, 900)], true, None);
    }
    let op = |rank: i64| {
        dataset
            .files("/op/")
            .into_iter()
            .find(|file| file.to_string_lossy().contains(&format!("rank={rank}/")))
            .unwrap()
    };
    let damage = |file: &Path, at: usize| {
        let mut bytes = fs::read(file).unwrap();
        let end = bytes.len().min(at + 400);
        bytes[at..end].fill(0xa5);
        fs::write(file, bytes).unwrap();
    };
    fs::remove_file(op(0)).unwrap();
    fs::write(op(1), "PAR1").unwrap();
    damage(&op(2), 4);
    let manifest = dataset
        .files("_manifest")
        .into_iter()
        .find(|file| file.to_string_lossy().contains("rank=3/"))
        .unwrap();
    fs::write(manifest, "{").unwrap();
    // Somebody adds a rank at this moment.
    let folder = op(4).parent().unwrap().to_path_buf();
    fs::write(folder.join(".part-0-host-1-x"), "PAR1").unwrap();
    let served = dataset.served(None);
    let tracks = served.tracks();
    let gpus: Vec<i32> = tracks.values().map(|track| track.0).collect();
    assert_eq!(gpus, [-1, -1, -1, 1]);
    let failures = served.json("failures");
    let why = |track: u64| {
        let failures = failures.as_array().unwrap();
        failures.iter().find(|failure| failure[0] == track).unwrap()[1].as_str().unwrap().to_string()
    };
    assert!(why(0).contains("rank=0") && why(0).contains("is not there"), "{}", why(0));
    assert!(why(1).contains("rank=1") && why(1).contains("4 bytes in place of"), "{}", why(1));
    let check = format!("rpd dataset check {} says", dataset.path().display());
    assert!(why(2).contains("damaged"), "{}", why(2));
    assert!((0..3).all(|track| why(track).contains(&check)), "{check}: {failures}");
    let findings = served.json("ranks")["findings"].to_string();
    assert!(
        findings.contains("the manifest cannot be read") && findings.contains("3 is not there"),
        "{findings}"
    );
    // The page of such a rank says what is wrong.
    let (status, headers, body) = served.ask(&served.path("rank/1/all/"), &[]);
    assert_eq!(
        (status.as_u16(), headers["content-type"].to_str().unwrap()),
        (500, "text/plain; charset=utf-8")
    );
    let said = String::from_utf8_lossy(&body);
    assert!(said.starts_with("the trace of rank 1 was not made: ") && said.contains("in place of"), "{said}");
    assert!(said.contains("op/job=j7/node=nhost/rank=1/") && !said.contains("rpd-view-"), "{said}");
    assert_eq!(served.get("rank/3/all/"), 200);
}

#[test]
fn the_dataset_is_one_word_in_what_is_advised() {
    let dataset = Dataset::named("a dataset");
    dataset.add("7", 0, &[(0, 100, 900)], true, None);
    fs::remove_file(&dataset.files("/op/")[0]).unwrap();
    let failures = dataset.served(None).json("failures").to_string();
    let check = format!("rpd dataset check '{}' says what to do", dataset.path().display());
    assert!(failures.contains(&check), "{failures}");
    fs::write(&dataset.files("_manifest")[0], "{").unwrap();
    let refused = dataset.refusal(None);
    assert!(
        refused.contains("no rank that can be read") && refused.contains("cannot be read ("),
        "{refused}"
    );
}

#[test]
fn the_page_says_that_only_sizes_are_compared() {
    let dataset = Dataset::new();
    dataset.add("7", 0, &[(0, 100, 900)], true, None);
    let (_, _, page) = dataset.served(None).page("");
    assert!(
        page.contains("Only the sizes of files are compared") && page.contains("rpd dataset check"),
        "{page}"
    );
}

#[test]
fn ranks_whose_clocks_do_not_fit_are_shown_as_if_they_had_begun_with_the_job() {
    let dataset = Dataset::new();
    const DAY: i64 = 86_400_000_000_000;
    dataset.add("7", 0, &[(0, 105, 600)], true, None);
    dataset.add("7", 1, &[(0, 205, 1100)], true, None);
    dataset.add("7", 2, &[(0, 3 * DAY + 5, 3 * DAY + 500)], true, None);
    dataset.add("7", 3, &[(0, 50_005, 50_500)], false, None);
    let served = dataset.served(None);
    let ranks = served.json("ranks");
    assert_eq!(ranks["jobs"][0]["span_ns"], 1000);
    let own: Vec<bool> =
        ranks["tracks"].as_array().unwrap().iter().map(|track| track["own_clock"].is_string()).collect();
    assert_eq!(own, [false, false, true, true]);
    assert_eq!(ranks["tracks"][3]["span"], json!([0, 500]));
    let tracks = served.tracks();
    assert_eq!(tracks[&2], expected(&[(0, 5, 500)], 0, 1000));
    assert_eq!(tracks[&3], expected(&[(0, 5, 500)], 0, 1000));
}

#[test]
fn a_job_can_be_chosen_and_what_is_not_there_is_said() {
    let dataset = Dataset::new();
    let refused = dataset.refusal(None);
    assert!(refused.contains("is no dataset"), "{refused}");
    fs::create_dir(dataset.path()).unwrap();
    let refused = dataset.refusal(None);
    assert!(refused.contains("is no dataset") && refused.contains("rpd dataset DIR FILE"), "{refused}");
    dataset.add("7", 0, &[(0, 100, 900)], true, None);
    dataset.add("8", 0, &[(0, 100, 200)], true, None);
    let both = dataset.served(None).json("ranks");
    let jobs: Vec<&Value> = both["jobs"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
    assert_eq!(jobs, [&json!("7"), &json!("8")]);
    let one = dataset.served(Some("8")).json("ranks");
    assert_eq!((one["jobs"].as_array().unwrap().len(), &one["tracks"][0]["ops"]), (1, &json!(1)));
    let refused = dataset.refusal(Some("9"));
    assert!(refused.contains("no job 9") && refused.contains("7, 8"), "{refused}");
    for manifest in dataset.files("_manifest") {
        fs::remove_file(manifest).unwrap();
    }
    let refused = dataset.refusal(None);
    assert!(refused.contains("has no ranks yet"), "{refused}");
}

#[test]
fn a_time_slice_opens_alone() {
    let dataset = Dataset::new();
    // The call of the second operation is in the slice before.
    dataset.add("7", 0, &[(0, 1000, 1100), (0, 2002, 2050), (0, 2500, 2600)], true, Some(1000));
    let served = dataset.served(None);
    let slices = served.json("ranks")["tracks"][0]["slices"].clone();
    let numbers: Vec<&str> =
        slices.as_array().unwrap().iter().map(|slice| slice[0].as_str().unwrap()).collect();
    let first = CLOCK / 1000;
    assert_eq!(numbers, [first, first + 1, first + 2].map(|slice| slice.to_string()));
    assert_eq!(slices[2][1], 2000 - 995);
    let trace = served.trace(&format!("rank/0/{}/", numbers[2]));
    assert_eq!((&trace["facts"]["ops"], &trace["facts"]["calls"]), (&json!(2), &json!(1)));
    assert_eq!(served.trace("rank/0/all/")["facts"]["ops"], 3);
}

#[test]
fn what_was_not_used_for_longest_is_closed_and_all_goes_at_the_end() {
    let dataset = Dataset::new();
    for rank in 0..6 {
        dataset.add("7", rank, &[(0, 100, 900)], true, None);
    }
    let served = dataset.served(None);
    let directories = || -> Vec<PathBuf> {
        let open = served.0.open.lock().unwrap();
        open.iter()
            .map(|(_, rank)| rank.directory.lock().unwrap().as_ref().unwrap().path().to_path_buf())
            .collect()
    };
    served.trace("rank/0/all/");
    let first = directories();
    for rank in 1..6 {
        served.trace(&format!("rank/{rank}/all/"));
    }
    let open = directories();
    assert!(open.len() == 4 && open.iter().all(|directory| directory.exists()), "{open:?}");
    assert!(!first[0].exists());
    // A page that is still open there is no reason to open it again, and asking for something is.
    assert_eq!((served.get("rank/0/all/alive").as_u16(), directories()), (204, open.clone()));
    assert_eq!(served.trace("rank/0/all/")["facts"]["ops"], 1);
    let open = directories();
    assert_eq!(open.len(), 4);
    drop(served);
    assert!(open.iter().all(|directory| !directory.exists()));
}

/// A dataset of so many ranks.
fn of_ranks(ranks: i64) -> Dataset {
    let dataset = Dataset::new();
    for rank in 0..ranks {
        dataset.add("7", rank, &[(0, 100, 900)], true, None);
    }
    dataset
}

#[test]
fn what_does_not_exist_takes_no_place() {
    let dataset = of_ranks(2);
    dataset.add("8", 0, &[(0, 1000, 1100), (0, 2500, 2600)], true, None);
    let served = dataset.served(None);
    served.making(1);
    for slice in 0..8 {
        for rest in ["", "trace", "?at=7"] {
            assert_eq!(served.get(&format!("rank/1/{slice}/{rest}")), 404, "{slice} {rest}");
        }
    }
    assert_eq!(served.open(), [0]);
    let sliced = Dataset::new();
    sliced.add("7", 0, &[(0, 1000, 1100), (0, 2500, 2600)], true, Some(1000));
    let served = sliced.served(None);
    let first = CLOCK / 1000;
    assert_eq!(served.get(&format!("rank/0/{}/", first + 7)), 404);
    assert_eq!(served.open(), [0; 0]);
    assert_eq!(served.get(&format!("rank/0/{first}/")), 200);
}

#[test]
fn a_trace_that_is_made_makes_room_before_one_that_is_being_made() {
    let dataset = of_ranks(6);
    let served = dataset.served(None);
    served.making(3);
    served.trace("rank/4/all/");
    assert_eq!(served.open(), [0, 1, 2, 4]);
    served.trace("rank/5/all/");
    assert_eq!(served.open(), [0, 1, 2, 5]);
}

#[test]
fn somebody_who_waits_is_not_sent_away_for_another() {
    let dataset = of_ranks(6);
    let served = dataset.served(None);
    served.making(4);
    // There is no room: the page comes again.
    let (status, headers, said) = served.page("rank/5/all/");
    assert_eq!((status.as_u16(), headers["refresh"].to_str().unwrap()), (200, "1"));
    assert!(said.contains("is being made"), "{said}");
    assert_eq!(served.get("rank/5/all/trace"), 503);
    assert_eq!(served.open(), [0, 1, 2, 3]);
    // Nobody waits for one of them any more.
    let abandoned = Arc::clone(&served.0.open.lock().unwrap()[2].1);
    *abandoned.asked.lock().unwrap() = Instant::now() - ABANDONED;
    served.trace("rank/5/all/");
    assert_eq!(served.open(), [0, 1, 3, 5]);
}

#[test]
fn somebody_who_waits_for_what_is_closed_sees_it_opened_again() {
    let dataset = of_ranks(1);
    let served = dataset.served(None);
    served.making(1);
    std::thread::scope(|scope| {
        let asked = || *served.0.open.lock().unwrap()[0].1.asked.lock().unwrap();
        let before = asked();
        let waiting = scope.spawn(|| served.get("rank/0/all/trace"));
        while asked() == before {
            sleep(Duration::from_millis(1));
        }
        served.0.open.lock().unwrap().clear();
        assert_eq!(waiting.join().unwrap(), 200);
    });
}
