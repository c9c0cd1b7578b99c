#!/usr/bin/env bash
# Sets this checkout up: .venv with the pinned packages, system libraries, a Vulkan driver.
# Run it through `make setup`. It can be run again at any time: it goes on where it was
# interrupted, and does nothing (in about a second) when everything is in place.
#
# usage: tools/setup.sh [--python PYTHON]    PYTHON: an interpreter of version 3.11 or 3.12
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

UV_VERSION=0.13.8
MIKASA_VERSION=1.0.0
MEMORY_GYM_VERSION=1.0.2
VENV=.venv
STAMP=$VENV/.setup-stamp
SWIFTSHADER=$VENV/share/predimem/swiftshader
# library that must be there, and its package in Debian and Ubuntu
SYSTEM_LIBRARIES="libX11.so.6:libx11-6 libGL.so.1:libgl1 libglib-2.0.so.0:libglib2.0-0
                  libgomp.so.1:libgomp1 libusb-1.0.so.0:libusb-1.0-0"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; trap - ERR; exit 1; }
trap 'say "stopped at line $LINENO; mend what is said above and run \`make setup\` again"' ERR

wanted_python=
while [ $# -gt 0 ]; do
  case $1 in
    --python) wanted_python=${2:?--python needs an interpreter}; shift 2 ;;
    *) fail "unknown argument $1 (usage: tools/setup.sh [--python PYTHON])" ;;
  esac
done

apt_install() { # packages; false where they could not be installed
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  local install="apt-get install -y -qq --no-install-recommends"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  $install "$@" >/dev/null 2>&1 || { apt-get update -qq >/dev/null && $install "$@" >/dev/null; }
}

system_libraries() {
  local known pair packages=()
  known=$(/sbin/ldconfig -p 2>/dev/null || ldconfig -p)
  for pair in $SYSTEM_LIBRARIES; do
    [[ $known == *"${pair%%:*}"* ]] || packages+=("${pair##*:}")
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  say "installing system libraries: ${packages[*]}"
  apt_install "${packages[@]}" || say "could not install them (no root, or no apt): going on without;
       simulation needs them, so have them installed: sudo apt-get install ${packages[*]}"
}

usable() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' >/dev/null 2>&1; }

find_python() { # prints an interpreter of a version that the pins are for
  local candidate
  if [ -n "$wanted_python" ]; then
    usable "$wanted_python" || fail "$wanted_python is not a Python 3.11 or 3.12 that runs"
    echo "$wanted_python"
    return
  fi
  for candidate in python3.11 python3.12 python3; do
    if usable "$candidate"; then echo "$candidate"; return; fi
  done
  return 1
}

make_venv() { # a venv with pip in it
  if usable $VENV/bin/python && $VENV/bin/python -c 'import pip' 2>/dev/null; then return; fi
  local python
  command -v python3 >/dev/null || apt_install python3 python3-venv || fail "no python3 found: sudo apt-get install python3-venv"
  if python=$(find_python); then
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
      local package
      package=$(basename "$python")-venv
      say "installing $package"
      apt_install "$package" || fail "$python cannot make virtual environments: sudo apt-get install $package"
    fi
    say "making $VENV with $("$python" --version)"
    "$python" -m venv --clear $VENV
    return
  fi
  [ -z "$wanted_python" ] || exit 1
  # Debian 13, for one, has neither 3.11 nor 3.12: uv can fetch one, and runs on any Python.
  say "no Python 3.11 or 3.12 found (python3 is $(python3 --version)): asking uv for one"
  python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv || fail "sudo apt-get install python3-venv"
  python3 -m venv --clear $VENV/bootstrap
  $VENV/bootstrap/bin/python -m pip install -q --disable-pip-version-check "uv==$UV_VERSION"
  $VENV/bootstrap/bin/uv venv -q --seed --allow-existing --python 3.11 $VENV ||
    fail "could not get Python 3.11: install Python 3.11 or 3.12 and run: make setup PYTHON=/path/to/python3.11"
}

install_packages() {
  local uv=$VENV/bin/uv quiet=--quiet started=$SECONDS
  if ! "$uv" --version 2>/dev/null | grep -q " $UV_VERSION"; then
    $VENV/bin/python -m pip install -q --disable-pip-version-check "uv==$UV_VERSION"
  fi
  [ ! -t 2 ] || quiet=
  say "installing the pinned packages (downloads 3.9 GB, takes 8.8 GB on disk; minutes, depending on the network)"
  "$uv" pip install $quiet --python $VENV/bin/python -c constraints.txt -e '.[dev]'
  # The suite pins old versions of everything but runs on those of constraints.txt.
  # Memory Gym pins a Gymnasium and a pygame that others here do not share.
  "$uv" pip install $quiet --python $VENV/bin/python --no-deps "mikasa-robo-suite==$MIKASA_VERSION" \
    "memory-gym==$MEMORY_GYM_VERSION"
  say "packages installed in $((SECONDS - started)) s"
}

vulkan_driver() {
  if grep -qs "\"$PWD/" $SWIFTSHADER/vk_swiftshader_icd.json; then return; fi
  local kind
  kind=$($VENV/bin/python -c 'from predimem.rendering.vulkan import find_driver; print(find_driver({}).kind)')
  case $kind in
    gpu | lavapipe) ;;
    *)
      say "no GPU with Vulkan found: getting SwiftShader, which renders on the CPU"
      tools/swiftshader.sh $SWIFTSHADER || say "going on without: nothing can be rendered until this is mended"
      ;;
  esac
}

stamp() { # what the installed packages depend on
  { pwd; cat pyproject.toml constraints.txt tools/setup.sh; } | sha256sum
}

mkdir -p $VENV
exec 9<tools/setup.sh
flock -n 9 || { say "waiting for another set-up of this checkout"; flock 9; }

system_libraries
if [ ! -f $STAMP ] || [ "$(cat $STAMP)" != "$(stamp)" ] || ! usable $VENV/bin/python; then
  rm -f $STAMP
  make_venv
  install_packages
  stamp >$STAMP.new
  mv $STAMP.new $STAMP
  vulkan_driver
  say "done in $SECONDS s; \`$VENV/bin/predimem doctor\` tells what was found"
else
  vulkan_driver
fi
