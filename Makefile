# make demo   - install what it needs, build, record a HIP program, show where its GPU time went; leaves ./trace.rpd
# make test   - all tests; lists what this machine could not run
# make test-fast - the tests that need Rust, a C compiler and Python only (no ROCm, no `make setup`), without those that run the command
# make firefox - the tests of pages in Firefox instead of Chromium
# make models - loom's: every order of steps of what threads share without a lock     make miri - what Miri can run (a nightly toolchain)
# make bench  - measurements, as ratios      make bench-passes - of passes over files
# make bench-exports - of exports            make bench-reports - of reports
# make bench-view - of the timeline in the browser; RPD_BENCH_LARGE=1: also of ten million events; RPD_TINYGRAD=PYTHON: beside tinygrad's viz
# make soak   - the long versions of the tests
# make matrix - the end-to-end tests under newer ROCm user spaces (root, 7 GB)
# make nfs    - the tests of files and locks on NFS, in a Linux of its own
# make cuda BIN=DIR OUT=DIR - on a machine with a GPU of NVIDIA's, with the release of BIN: that recording is exact, and what it costs; PyTorch's markers too
#               (50 minutes; PARTS='--exact --markers' some of it: the head of tests/cuda/run)
# make jobs   - the queries of jobs by SQLite, DuckDB and Spark, with 64 ranks (Java 17; 560 MB from PyPI); tests/jobs/run --growth: up to 1,000; --cost
# make jobs-launchers - the recorder below OpenMPI's mpirun and Slurm's srun, and on two nodes with clocks apart (Debian, root)
# make hip-api - the description of the HIP API, from HIP's headers
# make release - a wheel, .deb, .rpm and tarball for glibc 2.28 and later      make packages - tests them in other distributions (root)
# make build, then make install PREFIX=/usr/local [LIBDIR=/usr/local/lib64]      make uninstall

PREFIX ?= /usr/local
# Rocky, SLES and their like: LIBDIR=PREFIX/lib64.
LIBDIR = $(PREFIX)/lib
CARGO ?= cargo
RELEASE = target/release
PROGRAMS = target/programs
ROCTX_NAMES = libroctx64.so librocprofiler-sdk-roctx.so librocprofiler-sdk-roctx.so.1
# Commands with the names and arguments of rocmProfileData's tools.
FRONTS = rpd2tracing.py rpd2table.py rpd_trim.py rpd_autograd_summary.py
# Debian's, or AMD's.
ROCM_PATH ?= /opt/rocm
HIPCC ?= $(or $(shell command -v hipcc),$(ROCM_PATH)/bin/hipcc)
UNWINDER = -lgcc_s
HIPFLAGS = --offload-arch=gfx900 --offload-arch=gfx906 -O2
# A machine with an AMD GPU uses it, any other the software GPU.
ifneq ($(wildcard /dev/kfd),)
DEMO_RUN =
# hipcc asks the machine for its GPUs.
HIPFLAGS = -O2
else
DEMO_RUN = SIMGPU_GPUS=2 SIMGPU_CONFIG=fixtures/programs/demo.toml fixtures/simgpu/simgpu-run
endif

.PHONY: all setup build roctx demo test test-fast firefox models miri bench bench-passes bench-exports bench-reports bench-view soak matrix nfs cuda jobs jobs-launchers release packages hip-api install uninstall clean
all: build

setup:
	@./setup.sh tests

build:
	@[ -e $(RELEASE)/rpd ] || echo 'building: some minutes the first time'
	@$(CARGO) build --release --quiet
	@$(MAKE) --no-print-directory --silent roctx

# Cargo cannot give a library a version node; the names are those that programs link or open.
roctx: $(RELEASE)/roctx/libroctx64.so.4
$(RELEASE)/roctx/libroctx64.so.4: $(RELEASE)/librpd_roctx.a roctx/libroctx64.map
	@mkdir -p $(@D)
	@$(CC) -shared -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(UNWINDER) -Wl,--gc-sections -Wl,-z,defs -Wl,-z,nodelete -s \
		-Wl,-soname,$(@F) -Wl,--version-script=roctx/libroctx64.map
	@for name in $(ROCTX_NAMES); do ln -sf $(@F) $(@D)/$$name; done

$(PROGRAMS)/demo: fixtures/programs/demo.hip fixtures/programs/check.h
	@mkdir -p $(PROGRAMS)/tmp
	@# hipcc leaves its directories behind.
	@TMPDIR=$(abspath $(PROGRAMS)/tmp) $(HIPCC) $(HIPFLAGS) $< -o $@ 2>$@.log || { cat $@.log >&2; exit 1; }
	@rm -r $(PROGRAMS)/tmp

demo:
	@./setup.sh
	@$(MAKE) --no-print-directory build $(PROGRAMS)/demo
	@echo '$$ rpd record -o trace.rpd --force -- $(PROGRAMS)/demo'
	@$(DEMO_RUN) $(RELEASE)/rpd record -o trace.rpd --force -- $(PROGRAMS)/demo
	@echo; echo '$$ rpd info trace.rpd'
	@$(RELEASE)/rpd info trace.rpd
	@echo; echo '$$ rpd top trace.rpd'
	@$(RELEASE)/rpd top trace.rpd
	@echo; echo '$$ sqlite3 trace.rpd "select gpuId, opType, count(*), sum(end - start) / 1000 as us from op group by 1, 2"'
	@sqlite3 -header -column trace.rpd 'select gpuId, opType, count(*), sum(end - start) / 1000 as us from op group by 1, 2'
	@echo; echo 'The timeline in your browser: $(RELEASE)/rpd view trace.rpd'

# Tests of signals need them as a terminal has them, also when make runs in the background.
TEST = env --default-signal RPD_SKIPPED=$(CURDIR)/target/skipped $(CARGO) test --quiet
# Tests add a line to target/skipped for each thing that this machine cannot run.
listing_skips = rm -f target/skipped; $(1); status=$$?; \
	[ ! -s target/skipped ] || { echo; echo 'Not tested here:'; sort target/skipped; rm target/skipped; }; exit $$status
# Tests that need the trees of `make matrix`, or what their reason names, by the attribute that leaves them out.
IGNORED = sed -n '/^.\[ignore = /{s/[^"]*"\(.*\)".*/\1/;h;n;s/fn \([a-z_0-9]*\).*/\1/;G;s/\n/: /;p;}' tests/*.rs >>target/skipped
# Crates whose tests need neither a GPU runtime nor an assembler for GPUs.
FAST = sql schema settings escape duration-log codeobject disassembly preload transport tracer roctx remote-block remote-command postprocess view cli dh-comms analyzers

# Tests of the command find the recorder beside it.
TEST_FAST = $(CARGO) build --profile checked --quiet && $(TEST) --profile checked $(addprefix -p rpd-,$(FAST))
# The same without the tests that run the command (cli/tests): those take most of the time.
TEST_FASTEST = $(TEST) --profile checked $(addprefix -p rpd-,$(filter-out cli,$(FAST))) && $(TEST) --profile checked -p rpd-cli --bins

# The end-to-end tests run the libraries and commands as they are built.
test: setup
	@$(MAKE) --no-print-directory build
	@$(call listing_skips,$(IGNORED); $(TEST_FAST) && $(TEST) --release --workspace $(addprefix --exclude rpd-,$(FAST)))
	@$(MAKE) --no-print-directory models

test-fast:
	@$(call listing_skips,$(TEST_FASTEST))

# Debian has no geckodriver.
GECKODRIVER = $(CURDIR)/target/geckodriver
firefox:
	@./setup.sh tests firefox-esr
	@[ -x $(GECKODRIVER)/bin/geckodriver ] || $(CARGO) install --quiet --locked --root $(GECKODRIVER) geckodriver
	@$(CARGO) build --profile checked --quiet
	@PATH="$(GECKODRIVER)/bin:$$PATH" RPD_BROWSER=firefox $(TEST) --profile checked -p rpd-cli --test integration -- view html:: python::python_shows

models:
	@$(CARGO) test --release --quiet --manifest-path models/Cargo.toml --target-dir target/models

# What Miri can run: no file of /proc, no thread of ours, no GPU runtime. Takes minutes; the nightly toolchain needs miri and rust-src.
MIRI = MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test --quiet --lib --target-dir target/miri
miri:
	@$(CARGO) +nightly miri --version >/dev/null 2>&1 || \
		{ echo 'make miri: no Miri here: rustup toolchain install nightly --component miri,rust-src' >&2; exit 1; }
	@$(MIRI) -p rpd-codeobject
	@$(MIRI) -p rpd-transport -- records::
	@$(MIRI) -p rpd-tracer -- intercept::alternate intercept::choice intercept::validate hsa::reservation hsa::table gpu::kernels hsa_runtime::

# Every run's own number goes to target/bench.tsv; docs/speed.md says what is measured.
bench: setup
	@$(CARGO) bench --quiet -p rpd-schema --bench append
	@$(CARGO) bench --quiet -p rpd-analyzers --bench messages
	@$(CARGO) bench --quiet -p rpd-codeobject --bench counting -- --raw $(CURDIR)/target/bench-counting.tsv
	@$(CARGO) bench --quiet -p rpd-tests --bench recording -- --raw $(CURDIR)/target/bench.tsv

# RPD_ORIGINAL=DIR compares with the tools of a checkout of rocmProfileData with schema 2.
bench-passes: setup
	@$(CARGO) bench --quiet -p rpd-cli --bench passes -- --raw $(CURDIR)/target/bench-passes.tsv

# The same of exports.
bench-exports: setup
	@$(CARGO) bench --quiet -p rpd-cli --bench exports -- --raw $(CURDIR)/target/bench-exports.tsv

# And of reports.
bench-reports: setup
	@$(CARGO) bench --quiet -p rpd-cli --bench reports -- --raw $(CURDIR)/target/bench-reports.tsv

# Of what a browser does, too, where chromium and chromedriver are installed.
bench-view: setup
	@$(CARGO) bench --quiet -p rpd-cli --bench view -- --raw $(CURDIR)/target/bench-view.tsv

# With the kernels of Debian's libraries for GPUs: 540 MB to load, once.
SOAK_LIBRARIES = $(CURDIR)/target/soak-libraries
soak: setup
	@$(MAKE) --no-print-directory build
	@[ -d $(SOAK_LIBRARIES)/usr/lib ] || codeobject/tests/counting/libraries.sh $(SOAK_LIBRARIES)
	@RPD_SOAK=1 RPD_SOAK_LIBRARIES=$(SOAK_LIBRARIES)/usr/lib $(CARGO) test --release --quiet -p rpd-codeobject --test counting_soak -- --nocapture
	@export RPD_SOAK=1; $(call listing_skips,$(IGNORED); $(TEST) --release --workspace)
	@if $(CARGO) fuzz --version >/dev/null 2>&1; then for target in marker arguments moment note code_object counting messages; do \
	    $(CARGO) +nightly fuzz run $$target --target-dir target/fuzz -- -max_total_time=60 || exit 1; done; \
	else echo 'soak: no cargo-fuzz, so the fuzz targets were not run (cargo install cargo-fuzz)'; fi

matrix: setup
	@tests/matrix/run

nfs: setup
	@tests/nfs/run

# Builds nothing, as such a machine may have no cargo.
BIN ?= $(RELEASE)
OUT ?= target/cuda
cuda:
	@tests/cuda/run $(BIN) $(OUT) $(PARTS)

# Of what is committed.
release:
	@scripts/release

packages: $(PROGRAMS)/demo
	@$(MAKE) --no-print-directory release
	@tests/packages/run

jobs: setup
	@tests/jobs/run

jobs-launchers: setup
	@tests/jobs/launchers

# The description of the HIP API, from the headers of each version: tracer/src/sources/hip/description/headers.sh says where they come from.
HIP_HEADERS = target/hip-headers
HIP_API = tracer/src/sources/hip/description/hip_api.tsv
hip-api:
	@[ -d $(HIP_HEADERS) ] || { echo 'make hip-api: no headers in $(HIP_HEADERS): see tracer/src/sources/hip/description/headers.sh' >&2; exit 1; }
	@tracer/src/sources/hip/description/generate.py $(foreach version,$(sort $(notdir $(wildcard $(HIP_HEADERS)/*))),$(version)=$(HIP_HEADERS)/$(version)) \
		> $(HIP_API).new
	@mv $(HIP_API).new $(HIP_API)

# What an installation has of the build.
BUILT = $(addprefix $(RELEASE)/,rpd rpdRemote librpd_tracer.so librpd_remote.so librpd_hip.so librpd_libraries.so roctx/libroctx64.so.4)

# Builds nothing, so that root needs no cargo. `pip install ./python` packs what this installs.
install:
	@for file in $(BUILT); do [ -e $$file ] || { echo "make install: there is no $$file: run make build first" >&2; exit 1; }; done
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PREFIX)/include
	install -s -m 755 $(RELEASE)/rpd $(DESTDIR)$(PREFIX)/bin/rpd
	install -s -m 755 $(RELEASE)/rpdRemote $(DESTDIR)$(PREFIX)/bin/rpdRemote
	install -s -m 644 $(RELEASE)/librpd_tracer.so $(DESTDIR)$(LIBDIR)/librpd_tracer.so
	install -s -m 644 $(RELEASE)/librpd_remote.so $(DESTDIR)$(LIBDIR)/librpd_remote.so
	install -s -m 644 $(RELEASE)/librpd_hip.so $(DESTDIR)$(LIBDIR)/librpd_hip.so
	install -s -m 644 $(RELEASE)/librpd_libraries.so $(DESTDIR)$(LIBDIR)/librpd_libraries.so
	install -m 644 include/rpd_tracer.h include/rpd_probe.h include/rpd_handler.h $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(PREFIX)/share/rpd/queries
	install -m 644 sql/queries/*.sql $(DESTDIR)$(PREFIX)/share/rpd/queries
	install -d $(DESTDIR)$(PREFIX)/share/rpd/job_queries
	install -m 644 sql/job_queries/*.sql $(DESTDIR)$(PREFIX)/share/rpd/job_queries
	install -m 755 scripts/runTracer.sh scripts/loadTracer.sh $(addprefix scripts/,$(FRONTS)) $(DESTDIR)$(PREFIX)/bin
	install -d $(DESTDIR)$(LIBDIR)/rpd
	install -s -m 644 $(RELEASE)/roctx/libroctx64.so.4 $(DESTDIR)$(LIBDIR)/rpd/libroctx64.so.4
	for name in $(ROCTX_NAMES); do ln -sf libroctx64.so.4 $(DESTDIR)$(LIBDIR)/rpd/$$name; done
	install -m 644 scripts/tsan.suppressions $(DESTDIR)$(LIBDIR)/rpd/tsan.suppressions
	install -m 644 LICENSE $(wildcard $(RELEASE)/licenses.txt) $(DESTDIR)$(PREFIX)/share/rpd
	umask 022; $(RELEASE)/rpd manual $(DESTDIR)$(PREFIX)/share

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/rpd $(DESTDIR)$(LIBDIR)/librpd_tracer.so
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,rpd_tracer.h rpd_probe.h rpd_handler.h)
	rm -f $(DESTDIR)$(PREFIX)/bin/rpdRemote $(DESTDIR)$(LIBDIR)/librpd_remote.so $(DESTDIR)$(LIBDIR)/librpd_libraries.so $(DESTDIR)$(LIBDIR)/librpd_hip.so
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,runTracer.sh loadTracer.sh $(FRONTS))
	rm -rf $(DESTDIR)$(LIBDIR)/rpd $(DESTDIR)$(PREFIX)/share/rpd
	rm -f $(foreach command,rpd rpdRemote,$(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1/$(command).1 man/man1/$(command)-*.1 \
		bash-completion/completions/$(command) zsh/site-functions/_$(command) fish/vendor_completions.d/$(command).fish))

clean:
	@$(CARGO) clean --quiet
