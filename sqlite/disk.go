package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// checkEvery is how often the writer looks whether the file is still there,
	// and whether it can be written again.
	checkEvery = time.Second
	// longestPause is what the pause between two attempts to write grows to: one
	// may fill up the disk for a moment, which others write to as well.
	longestPause = 15 * time.Second
	// probeSize is how many bytes an attempt adds to the database, and takes away
	// again: more than free pages are likely to hold.
	probeSize = 256 << 10
)

// errGone says that the path leads to another file, or to none.
var errGone = errors.New("the file was deleted or replaced while it was open; put it back, or restart")

// unwritable says why nothing can be saved. To those who ask for the sentinel it
// is store.ErrFull where the disk is the cause.
type unwritable struct{ cause error }

func (u *unwritable) Error() string { return "sqlite: nothing can be saved: " + u.cause.Error() }
func (u *unwritable) Unwrap() error { return u.cause }
func (u *unwritable) Is(target error) bool {
	return target == store.ErrFull && !errors.Is(u.cause, errGone) && code(u.cause) != sqlite3.SQLITE_BUSY
}

// disk knows whether the file can be written, by how the last write went. What
// isn't said to be for all is for the writer's goroutine alone.
type disk struct {
	path   string // as it was opened
	file   string // where that leads to: SQLite, and we, put what goes with it there
	notify func(error)
	opened map[string]os.FileInfo // the file and its log, as they were opened
	why    atomic.Pointer[unwritable]

	reserved bool
	pause    time.Duration
	next     time.Time // not before is it tried again
}

func newDisk(path string, notify func(error)) *disk {
	if notify == nil {
		notify = func(error) {}
	}
	return &disk{path: path, notify: notify, opened: make(map[string]os.FileInfo)}
}

// watch begins to look after the files, which are open by now.
func (d *disk) watch() (err error) {
	if d.file, err = filepath.EvalSymlinks(d.path); err != nil {
		return err
	}
	for _, name := range []string{d.path, d.file + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		d.opened[name] = info
	}
	return nil
}

// lost returns an error where the open files are no longer those that others
// would open: what is written to them is gone when this process ends.
func (d *disk) lost() error {
	for name, opened := range d.opened {
		now, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, opened) {
			return errGone
		}
	}
	return nil
}

// state is why nothing can be saved; nil where nothing is known to be wrong. It
// is for all.
func (d *disk) state() error {
	if u := d.why.Load(); u != nil {
		return u
	}
	return nil
}

// fail notes that a write failed.
func (d *disk) fail(why error) {
	u := &unwritable{explain(why)}
	before := d.why.Swap(u)
	if before == nil || errors.Is(why, errGone) { // to look again costs nothing
		d.pause = 0
	} else {
		d.pause = min(max(2*d.pause, checkEvery), longestPause)
	}
	d.next = time.Now().Add(d.pause)
	if before == nil || errors.Is(why, errGone) && !errors.Is(before, errGone) {
		d.notify(u)
	}
}

// recovered notes that the file can be written.
func (d *disk) recovered() {
	if d.why.Swap(nil) != nil {
		d.notify(nil)
	}
}

// fault returns the first error, of a transaction or of the jobs in it, that
// says that the file can't be written.
func fault(err error, group []*job) error {
	if isFault(err) {
		return err
	}
	for _, j := range group {
		if isFault(j.err) {
			return j.err
		}
	}
	return nil
}

// isFault reports whether an error comes from the disk and not from what was to
// be written.
func isFault(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errGone) {
		return true
	}
	switch code(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY:
		return true
	case sqlite3.SQLITE_IOERR:
		var e *sqlite.Error
		return errors.As(err, &e) && e.Code() != sqlite3.SQLITE_IOERR_READ && e.Code() != sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return false
}

// code is SQLite's primary code of an error; 0 where it isn't SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// check looks after the file between writes: whether it is still there, and,
// where it couldn't be written, whether it can be again.
func (w *writer) check() {
	d := w.disk
	if err := d.lost(); err != nil {
		d.fail(err)
		return
	}
	failing := d.state() != nil
	if !failing && d.reserved || time.Now().Before(d.next) {
		return
	}
	var err error
	if failing {
		err = w.probe()
	}
	if err == nil {
		err = d.reserve()
	}
	if err != nil {
		d.fail(err)
		return
	}
	d.recovered()
}

// probe writes to the file, and leaves nothing behind.
func (w *writer) probe() error {
	j := &job{run: func(c *conn) error {
		id, err := c.insert(`INSERT INTO bodies (messages) VALUES (zeroblob(?))`, probeSize)
		if err != nil {
			return err
		}
		return c.exec(`DELETE FROM bodies WHERE id = ?`, id)
	}}
	w.dirty = true
	return errors.Join(w.transact([]*job{j}), j.err)
}
