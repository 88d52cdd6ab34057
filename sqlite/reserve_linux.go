package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// allocate has the file take up so many bytes of the disk, without writing them
// where the file system can do that.
func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS):
			return writeOut(f, size)
		}
		return os.NewSyscallError("fallocate", err)
	}
}
