#!/usr/bin/env bash
# Chromium and its driver for the tests of the site, where Debian has them. Without them these tests are
# skipped, so nothing here fails.
set -u
command -v chromium >/dev/null && command -v chromedriver >/dev/null && exit 0
say() { printf '%s\n' "fdgeom set-up: $*" >&2; }
command -v apt-get >/dev/null || { say "no apt-get: the tests of the site in a browser are skipped"; exit 0; }
as_root=
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || { say "no root rights: the tests of the site in a browser are skipped; they want apt-get install chromium chromium-driver"; exit 0; }
  as_root=sudo
fi
say "Debian packages chromium and chromium-driver, for the tests of the site (1 minute)"
log=$(dirname "${BASH_SOURCE[0]}")/log/browser.log
mkdir -p "$(dirname "$log")"
{ $as_root apt-get update && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends chromium chromium-driver; } >"$log" 2>&1 </dev/null \
  || say "they could not be installed ($log): the tests of the site in a browser are skipped"
exit 0
