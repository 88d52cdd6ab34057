//go:build unix

package caddymodule_test

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used, in user and system time.
func cpuTime() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}
