#!/bin/sh
# Runs before a deb or rpm package is removed, and before an upgrade.
set -e
case "$1" in
upgrade | 1) exit 0 ;; # dpkg's and rpm's words for an upgrade
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now backstory.service
