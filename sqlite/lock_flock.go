//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// fileLock tells the store that opens a file whether another one, of this
// process or of another, has it open: what that one is busy with must not be
// taken for something that a dead process left behind. The operating system
// lets go of it when a process dies.
//
// It isn't taken on the database itself: closing that would drop the locks that
// SQLite holds there.
type fileLock struct{ f *os.File }

// process names this process in the lock file: ids of processes repeat where each
// container counts its own.
var process = fmt.Sprint(os.Getpid(), "-", rand.Text())

// elsewhere reports whether it is another process that came first.
func (l *fileLock) elsewhere() bool {
	name := make([]byte, 64)
	n, _ := l.f.ReadAt(name, 0) // at the end of the file that is an error, too
	return string(name[:n]) != process
}

// sign says who came first. It is for a warning only: that it may fail is no matter.
func (l *fileLock) sign() {
	_ = l.f.Truncate(0)
	_, _ = l.f.WriteAt([]byte(process), 0)
}

// acquire takes the lock, alone if nobody else has it.
func acquire(path string) (l *fileLock, alone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	l = &fileLock{f}
	err = l.flock(syscall.LOCK_EX | syscall.LOCK_NB)
	if alone = err == nil; alone {
		l.sign()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = l.share()
	}
	if err != nil {
		return nil, false, errors.Join(err, l.release())
	}
	return l, alone, nil
}

// share lets others in.
func (l *fileLock) share() error { return l.flock(syscall.LOCK_SH) }

func (l *fileLock) flock(how int) error {
	for {
		err := syscall.Flock(int(l.f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *fileLock) release() error { return l.f.Close() }
