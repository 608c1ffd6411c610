#!/bin/sh
# The libraries of counting_soak.rs, as Debian trixie packs them, below a directory: 540 MB to load, 3.5 GB unpacked. Nothing is installed.
#   codeobject/tests/counting/libraries.sh DIRECTORY
#   RPD_SOAK=1 RPD_SOAK_LIBRARIES=DIRECTORY/usr/lib cargo test --release -p rpd-codeobject --test counting_soak -- --nocapture
set -eu

[ $# = 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
directory=$(realpath -- "$1")
packages="librocblas0 librocsparse0 librocfft0 librocrand1"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
mirror=$(grep -rhoE '^(URIs:|deb) +[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d/ 2>/dev/null |
    grep -oE 'https?://[^ ]+/debian/?' | head -1 || true)
[ -n "$mirror" ] || { echo "$0: apt's sources name no mirror of Debian" >&2; exit 1; }
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/packages"
echo "deb [signed-by=$keys] $mirror trixie main" >"$apt/sources.list"
own() {
    apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$apt/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" -o APT::Sandbox::User=root "$@"
}
own update
cd "$apt/packages"
own download $packages
for package in *.deb; do
    dpkg-deb -x "$package" "$directory"
done
