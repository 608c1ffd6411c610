//! Names come out as the tools and recorders people know spell them, and nothing makes the demangler misbehave.

use rpd_codeobject::demangle;

/// Lines of a mangled name, a tab, and what c++filt makes of it.
const NAMES: &str = include_str!("data/names.tsv");

/// Names whose text differs from c++filt's in the spelling of an expression: the address of a function without its
/// parameters, an index in a decltype, parentheses around an operand.
const SPELLED_DIFFERENTLY: [&str; 3] = ["by_pointer", "4decl", "8only_int"];

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.lines().map(|line| line.split_once('\t').expect("two columns"))
}

#[test]
fn real_names_read_as_from_the_usual_demangler() {
    let mut same = 0;
    for (mangled, expected) in names() {
        if SPELLED_DIFFERENTLY.iter().any(|name| mangled.contains(name)) {
            let text = demangle(mangled);
            assert!(text.starts_with(|c: char| c != '_') && text.contains("lib::"), "{mangled}: {text}");
            continue;
        }
        assert_eq!(demangle(mangled), expected);
        same += 1;
    }
    assert!(same > 35);
}

#[test]
fn suffixes_come_off() {
    assert_eq!(demangle("_Z4vaddPf.kd"), "vadd(float*)");
    assert_eq!(demangle("_Z4vaddPf"), "vadd(float*)");
    assert_eq!(demangle("vadd(float*) [clone .kd]"), "vadd(float*)");
    assert_eq!(demangle("plain.kd"), "plain");
    assert_eq!(demangle("plain"), "plain");
    assert_eq!(demangle(""), "");
    for (mangled, _) in names() {
        assert_eq!(demangle(&format!("{mangled}.kd")), demangle(mangled));
    }
}

#[test]
fn what_is_not_mangled_stays() {
    let names = [
        "Cijk_Ailk_Bljk_SB_MT64x64x8_SE",
        "__amd_rocclr_copyBuffer",
        "void f<int>(int*)",
        "_Z",
        "_Zzz",
        "_Z4vad",
        "ünï",
    ];
    for name in names {
        assert_eq!(demangle(name), name);
    }
    assert_eq!(demangle("_Z4vaddPf!"), "_Z4vaddPf!", "a rest that is not part of the name");
}

#[test]
fn numbers_carry_the_suffix_of_their_type() {
    assert_eq!(demangle("_Z1fILj256ELm4EEvPj"), "void f<256u, 4ul>(unsigned int*)");
    assert_eq!(demangle("_Z1fILin5ELln5ELxn5ELy5EEvv"), "void f<-5, -5l, -5ll, 5ull>()");
    assert_eq!(demangle("_Z1fILs5EEvv"), "void f<(short)5>()");
    assert_eq!(demangle("_Z1fPFvjEj"), "f(void (*)(unsigned int), unsigned int)");
}

#[test]
fn half_floats_are_read_also_beside_names_that_look_like_them() {
    assert_eq!(demangle("_Z4axpyDF16_PDF16_"), "axpy(_Float16, _Float16*)");
    assert_eq!(demangle("_Z9axpyDF16_PDF16_"), "axpyDF16_(_Float16*)");
    assert_eq!(demangle("_Z4axpyPDF16b"), "axpy(std::bfloat16_t*)");
}

#[test]
fn local_things_of_template_functions_leave_out_return_types() {
    let lambda = "_Z7functorIZ6launchIiEiT_EUlvE_EvS1_";
    assert_eq!(
        demangle(lambda),
        "void functor<launch<int>(int)::{lambda()#1}>(launch<int>(int)::{lambda()#1})"
    );
}

#[test]
fn empty_packs_take_no_place() {
    assert_eq!(demangle("_Z1fIJEEvDpT_"), "void f<>()");
    assert_eq!(demangle("_Z1fIiJEEvT_DpT0_"), "void f<int>(int)");
    assert_eq!(demangle("_Z1fIiJEEvPT_DpPKT0_"), "void f<int>(int*)");
    assert_eq!(demangle("_Z1fI1AIbJ1BIiJEEEEEvT_"), "void f<A<bool, B<int> > >(A<bool, B<int> >)");
}

#[test]
fn qualifiers_follow_the_whole_nested_type() {
    let cases = [
        ("_Z1fIPN1N1AEPNS1_1BEEvT_T0_", "void f<N::A*, N::A::B*>(N::A*, N::A::B*)"),
        ("_Z1fIPN1N1AEPKNS1_1BEEvT_T0_", "void f<N::A*, N::A::B const*>(N::A*, N::A::B const*)"),
        ("_Z1fIN1N1AEEvPKNT_1BES2_", "void f<N::A>(N::A::B const*, N::A)"),
        (
            "_Z1fIPN1N1AEPVKNS1_1BIPNS1_1CEEEEvT_T0_",
            "void f<N::A*, N::A::B<N::A::C*> const volatile*>(N::A*, N::A::B<N::A::C*> const volatile*)",
        ),
        // A const member function, and a pointer to a member, stay as they are.
        ("_Z1fIZNK1A1gEvEUlvE_EvT_", "void f<A::g() const::{lambda()#1}>(A::g() const::{lambda()#1})"),
        ("_Z1fM1Ai", "f(int A::*)"),
    ];
    for (mangled, expected) in cases {
        assert_eq!(demangle(mangled), expected, "{mangled}");
    }
}

#[test]
fn truncated_at_every_length() {
    for (mangled, _) in names() {
        for end in 0..mangled.len() {
            let cut = &mangled[..end];
            let text = demangle(cut);
            assert!(!text.is_empty() || cut.is_empty());
        }
    }
}

#[test]
fn texts_have_an_end() {
    // Each parameter refers to the last one twice: 2^60 words if it were written out.
    let mut bomb = String::from("_Z1fPFviiE");
    for at in 0..60 {
        let last = match at {
            0 => "_".to_string(),
            n => format!("{}_", char::from_digit(n - 1, 36).unwrap_or('Z').to_ascii_uppercase()),
        };
        bomb += &format!("PFvS{last}S{last}E");
    }
    assert!(demangle(&bomb).len() <= 256 * 1024);
    let deep = format!("_Z1f{}i", "P".repeat(100_000));
    assert_eq!(demangle(&deep), deep);
    let nested = format!("_Z1f{}i{}", "N1aI".repeat(20_000), "EE".repeat(20_000));
    assert_eq!(demangle(&nested), nested);
}

#[test]
fn deep_names_fit_the_stack_of_a_small_thread() {
    let work = || {
        for depth in [10, 50, 100, 150, 200, 1000] {
            let name = format!("_Z1fI{}i{}Evv", "N1aI".repeat(depth), "EE".repeat(depth));
            demangle(&name);
            demangle(&format!("_Z1f{}i", "PKS_".repeat(depth)));
            demangle(&format!("_Z1fIXadL{}vv", "_Z1fIXadL".repeat(depth)));
            demangle(&format!("_Z1fI{}E", "X".repeat(depth) + &"pl".repeat(depth) + &"Li1E".repeat(depth)));
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(work).unwrap().join().unwrap();
}
