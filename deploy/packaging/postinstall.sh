#!/bin/sh
# Runs after a deb or rpm package was installed or upgraded.
set -e
systemd-sysusers backstory.conf
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart backstory.service
