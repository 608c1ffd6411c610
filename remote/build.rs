//! Link options of librpd_remote.so that cargo has no key for.

fn main() {
    // A thread and signal handlers of ours must never run unmapped code: dlclose keeps the library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librpd_remote.so");
    // A missing symbol shows when the library is built, not inside somebody's program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    // It is in every process of a job: no symbol table beyond the dynamic one.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-s");
    println!("cargo:rerun-if-changed=build.rs");
}
