//go:build !linux

package sandbox

import (
	"errors"
	"os/exec"
	"runtime"
)

// startConfined starts a child, which here is confined by nothing.
func startConfined(cmd *exec.Cmd) error { return cmd.Start() }

// Barriers names what confines the children that read files, and what of it
// this system doesn't have, with the reason.
func Barriers() (on []string, off map[string]error) {
	return nil, map[string]error{"confinement": errors.New("not on " + runtime.GOOS)}
}

// Hide does nothing: other systems have other ways.
func Hide() error { return nil }
