//go:build !unix

package caddymodule_test

import (
	"errors"
	"time"
)

func cpuTime() (time.Duration, error) {
	return 0, errors.New("the CPU time of a process can't be read exactly here")
}
