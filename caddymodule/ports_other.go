//go:build !linux

package caddymodule

// warnOfSharedPorts does nothing where there is no /proc to see it in.
func warnOfSharedPorts() {}
