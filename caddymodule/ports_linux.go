package caddymodule

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// Caddy shares its ports (SO_REUSEPORT), so that a second process on one gets no
// error: the system gives each of them a part of the connections.

// portsAfter is how long after the first start ports are looked at: by then all apps
// of the configuration listen.
const portsAfter = time.Second

var watchPorts sync.Once

// warnOfSharedPorts says, once in a process, which ports another process listens on
// as well.
func warnOfSharedPorts() {
	watchPorts.Do(func() {
		time.AfterFunc(portsAfter, func() {
			for _, address := range sharedPorts() {
				caddy.Log().Named("backstory").Warn("another process listens on the same port: each gets a part of the requests; stop one", zap.String("port", address))
			}
		})
	})
}

// sharedPorts are the TCP ports on which both this process and another one listen.
func sharedPorts() (shared []string) {
	own := ownSockets()
	ours, theirs := make(map[string]bool), make(map[string]bool)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // no IPv6, or a /proc that shows nothing
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			const local, state, inode, listens = 1, 3, 9, "0A"
			fields := strings.Fields(lines.Text())
			if len(fields) <= inode || fields[state] != listens {
				continue
			}
			if own[fields[inode]] {
				ours[fields[local]] = true
			} else {
				theirs[fields[local]] = true
			}
		}
		_ = f.Close()
	}
	for address := range ours {
		if theirs[address] {
			shared = append(shared, portOf(address))
		}
	}
	return shared
}

// portOf is the port of an address as the kernel writes it: 0100007F:1F90.
func portOf(address string) string {
	_, port, _ := strings.Cut(address, ":")
	n, _ := strconv.ParseUint(port, 16, 16)
	return strconv.FormatUint(n, 10)
}

// ownSockets are the inodes of this process's sockets.
func ownSockets() map[string]bool {
	own := make(map[string]bool)
	files, _ := filepath.Glob("/proc/self/fd/*") // the pattern is good
	for _, name := range files {
		target, err := os.Readlink(name)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok && err == nil {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}
