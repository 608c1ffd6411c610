//! Link options of librpd_tracer.so that cargo has no key for, the wrappers of HIP's functions, and how many
//! functions of other libraries there are.

#[path = "build/library.rs"]
mod library;
#[path = "build/wrappers.rs"]
mod wrappers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Threads and thread-local destructors of ours must never run unmapped code: dlclose keeps the library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librpd_tracer.so");
    // A missing symbol shows when the library is built, not inside somebody's program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    println!("cargo:rerun-if-changed=build.rs");
    library::write()?;
    wrappers::write()
}
