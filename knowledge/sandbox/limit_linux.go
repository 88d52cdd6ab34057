package sandbox

import (
	"fmt"
	"syscall"
)

// maxOutput bounds what a child writes to disk, bytes.
const maxOutput = 512 << 20

// limit bounds this process, and those that it starts, each by itself.
// Addresses that are only reserved, as Go does plenty, don't count as data.
func limit(memory, seconds int64) error {
	for _, l := range []struct {
		resource int
		most     int64
	}{{syscall.RLIMIT_DATA, memory}, {syscall.RLIMIT_CPU, seconds}, {syscall.RLIMIT_FSIZE, maxOutput}, {syscall.RLIMIT_CORE, 0}} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: uint64(l.most), Max: uint64(l.most)}); err != nil {
			return fmt.Errorf("limit the process that reads files: %w", err)
		}
	}
	return nil
}
