# Sourced by the scripts beside it that put an editor into a folder of its own. Nothing is installed: Debian's packages
# are fetched by apt with a private root, unpacked, and started with the dynamic loader that came with them.
#
# A script says its `name`, and what a person can do who has no Debian (`otherwise`), calls `from_debian FOLDER PACKAGE…`,
# puts what starts the editor into "$new", and calls `finish`.

say() { echo "$name: $*" >&2; }
fail() { say "$*"; exit 1; }

# Packages of Debian's unstable, with all that they depend on: stable has no editor that is new enough. Sets `new` (what
# becomes the folder), `loader` and `libraries` (paths below $new/root).
from_debian() {
    folder=$1
    shift
    local tool keyring mirror package apt
    for tool in apt-get apt-config dpkg dpkg-deb; do
        command -v "$tool" >/dev/null || fail "there is no $tool here; $otherwise"
    done
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [[ -r $keyring ]] || fail "no $keyring: this is no Debian; $otherwise"

    # Both forms of sources: "URIs: …" and "deb [options] … suite".
    mirror=$(find /etc/apt -maxdepth 2 \( -name '*.sources' -o -name '*.list' \) -exec cat {} + 2>/dev/null |
        sed -nE 's/^URIs:[[:space:]]*([^[:space:]]+).*/\1/p; s/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+).*/\2/p' |
        grep -v security | awk '/debian/ && !found { print; found = 1 }')
    [[ -n $mirror ]] || fail "apt knows no Debian mirror"

    mkdir -p "$(dirname "$folder")"
    work=$(mktemp -d "$(dirname "$folder")/$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    apt=$work/apt
    new=$work/new
    mkdir -p "$apt"/etc/apt/{apt.conf.d,preferences.d} "$apt"/var/lib/{dpkg,apt/lists/partial} \
        "$apt"/var/cache/apt/archives/partial "$new/root"
    : >"$apt/var/lib/dpkg/status"
    echo "deb [signed-by=$keyring] $mirror sid main" >"$apt/etc/apt/sources.list"
    {
        # Proxies and the like that this machine needs.
        apt-config dump | grep '^Acquire::' || true
        echo "Dir \"$apt\";"
        echo 'APT::Install-Recommends "false"; APT::Sandbox::User "root";'
        # A snapshot mirror's index may be past its date; its signature is checked all the same.
        echo 'Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; Acquire::Retries "1";'
    } >"$work/apt.conf"
    export APT_CONFIG=$work/apt.conf

    if ! apt-get -qq update >"$work/log" 2>&1 || ! apt-get -qq install -y --download-only "$@" >>"$work/log" 2>&1; then
        tail -n 5 "$work/log" >&2
        fail "$mirror could not be reached or has not all of $*"
    fi
    for package in "$apt"/var/cache/apt/archives/*.deb; do
        # What compilers need, which nothing here compiles with.
        case ${package##*/} in binutils* | *-dev_* | lib?san[0-9]_* | libhwasan*) continue ;; esac
        dpkg-deb -x "$package" "$new/root"
    done
    unset APT_CONFIG

    loader=$(cd "$new/root" && find usr -name 'ld-linux*.so.*' -print -quit)
    [[ -n $loader ]] || fail "the packages hold no dynamic loader"
    libraries=$(cd "$new/root" && dirname "$(find usr/lib -name libc.so.6 -print -quit)")
}

# The folder is there as a whole or not at all.
finish() {
    rm -rf "$folder"
    mv "$new" "$folder"
}
