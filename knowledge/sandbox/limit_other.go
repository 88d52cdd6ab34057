//go:build !linux

package sandbox

// limit leaves it to Go's own bound, which is soft, and to the clock.
func limit(memory, seconds int64) error { return nil }
