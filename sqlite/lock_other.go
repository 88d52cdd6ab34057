//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

// fileLock is nothing on systems without flock: there, one process at a time
// may open a file.
type fileLock struct{}

func acquire(string) (l *fileLock, alone bool, err error) { return &fileLock{}, true, nil }

func (*fileLock) elsewhere() bool { return false }

func (*fileLock) share() error   { return nil }
func (*fileLock) release() error { return nil }
