package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// defaultReaders suits a machine of a few cores; a read keeps one busy.
	defaultReaders = 8
	// defaultCacheSize holds the last 50 messages of some thousand sessions.
	defaultCacheSize = 64 << 20
	// busyTimeout matters where another process holds the file, such as a
	// backup; in this one there is a single writer.
	busyTimeout = 10 * time.Second
	// mmapSize is how much of the file a search reads without copying. Without
	// it a vector search takes two to three times as long. Other connections do
	// without: each commit has all that map the file map it anew.
	mmapSize = 1 << 30
	// checkpointPages is how long the write-ahead log grows before it is folded
	// into the database. Four times SQLite's default: a page that many appends
	// write to is then copied once for more of them.
	checkpointPages = 4000
	// journalSizeLimit is what the write-ahead log is cut to after a burst.
	journalSizeLimit = 64 << 20
)

// Open opens the store in the file at path, and creates it, with the folders
// above it, where it isn't there. Uploads that a dead process left unfinished
// are marked as failed, and removals that it left unfinished go on.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	o.Synchronous = cmp.Or(o.Synchronous, Full)
	o.Readers = cmp.Or(o.Readers, defaultReaders)
	o.CacheSize = cmp.Or(o.CacheSize, defaultCacheSize)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Synchronous != Full && o.Synchronous != Normal {
		return nil, fmt.Errorf("sqlite: synchronous is %q; it must be %s or %s", o.Synchronous, Full, Normal)
	}
	// An absolute path can't be mistaken for one of SQLite's special names.
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, explain(err))
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	if err := prepare(path); err != nil {
		return nil, err
	}
	lock, alone, err := acquire(path + "-lock")
	if err != nil {
		return nil, err
	}
	s := &Store{now: o.Now, rates: newRates(o.Now), lock: lock, elsewhere: !alone && lock.elsewhere(), deleted: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	if s.writer, err = newWriter(ctx, path, o); err != nil {
		return nil, err
	}
	go s.writer.loop()
	if s.readers, err = newPool(path, o); err != nil {
		return nil, err
	}
	if s.searchers, err = newPool(path, o, "mmap_size("+strconv.Itoa(mmapSize)+")"); err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, err
	}
	if alone {
		if err := s.resume(ctx); err != nil {
			return nil, err
		}
	}
	s.sweeping.Go(s.sweep)
	s.eraseSoon() // what a process that died has deleted
	s.sweeping.Go(s.erase)
	return s, lock.share()
}

// abandon releases what a failed open had got hold of. That error is the one to
// report; those of closing follow from it.
func (s *Store) abandon() {
	s.stop()
	s.tasks.Wait()
	_ = s.readers.close()
	_ = s.searchers.close()
	if s.writer != nil {
		_ = s.writer.close()
	}
	_ = s.lock.release()
}

// prepare creates the file and the folders above it, for the owner alone, and
// finds out what SQLite would only call "unable to open".
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a directory; name a file in it")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("it can't be written; check its owner and mode: %w", err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn names the file and what every connection sets up. The timeout comes
// first, since the rest may have to wait; auto_vacuum must come before anything
// that writes.
func dsn(path string, synchronous Synchronous, more ...string) string {
	pragmas := append([]string{
		"busy_timeout(" + strconv.FormatInt(busyTimeout.Milliseconds(), 10) + ")",
		"auto_vacuum(INCREMENTAL)",
		"journal_mode(WAL)",
		"synchronous(" + string(synchronous) + ")",
		"foreign_keys(1)",
		"temp_store(MEMORY)",
		"wal_autocheckpoint(" + strconv.Itoa(checkpointPages) + ")",
		"journal_size_limit(" + strconv.Itoa(journalSizeLimit) + ")",
	}, more...)
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	u.RawQuery = url.Values{"_pragma": pragmas}.Encode()
	return u.String()
}

// explain adds a remedy to the errors of SQLite that have one.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full; make room: %w", err)
	}
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk is full; make room: %w", err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file isn't a SQLite database; name another: %w", err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("the file is damaged; restore a backup: %w", err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("it can't be written; check the owner and mode of the file and its folder: %w", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another process keeps it locked: %w", err)
	}
	return err
}
