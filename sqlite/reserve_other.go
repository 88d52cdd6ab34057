//go:build !linux

package sqlite

import "os"

// allocate has the file take up so many bytes of the disk.
func allocate(f *os.File, size int64) error { return writeOut(f, size) }
