package sqlite

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// headerWatch reads the header of the write-ahead log's index, the -shm file,
// where it lies in memory: the 48 bytes by which SQLite itself tells, as each
// read begins, whether the pages that it has cached are still good
// (walIndexTryHdr; https://sqlite.org/walformat.html, section 2.1). They hold a
// count of the commits, the length of the log and its checksums, and are
// written before a COMMIT returns. It takes some nanoseconds, where a query
// has to lock and unlock the index.
type headerWatch struct{ page []byte }

var errNoHeader = errors.New("sqlite: the index of the write-ahead log isn't mapped")

// newHeaderWatch maps the index of the file at path, which this process must
// have open already.
//
// It is mapped by the descriptor that SQLite has open: to open the file once
// more and to close it again would drop the locks that SQLite holds there, by
// the rules of POSIX.
func newHeaderWatch(path string) (watch, error) {
	var index syscall.Stat_t
	if err := syscall.Stat(path+"-shm", &index); err != nil {
		return nil, err
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || !same(fd, &index) {
			continue
		}
		page, err := syscall.Mmap(fd, 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
		if err == nil {
			return &headerWatch{page}, nil
		}
	}
	return nil, errNoHeader
}

// same tells whether a descriptor is of the file. SQLite keeps the one of the
// index as long as there are connections: none is closed meanwhile.
func same(fd int, file *syscall.Stat_t) bool {
	var s syscall.Stat_t
	return syscall.Fstat(fd, &s) == nil && s.Dev == file.Dev && s.Ino == file.Ino && s.Size >= int64(os.Getpagesize())
}

// stamp reads the first copy of the header. SQLite writes that last: as long
// as any of it is the old one, the commit that changes it isn't done. Half
// old and half new, it is the stamp of no state, and nothing is kept by it.
func (w *headerWatch) stamp() (s stamp, err error) {
	for i := range s {
		s[i] = atomic.LoadUint64((*uint64)(unsafe.Pointer(&w.page[8*i])))
	}
	return s, nil
}

func (w *headerWatch) close() error { return syscall.Munmap(w.page) }
