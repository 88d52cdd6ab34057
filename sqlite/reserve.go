package sqlite

import (
	"errors"
	"os"
)

// reserveSize is how much room on the disk is kept free, by a file beside the
// database that holds nothing. When the disk is full that file goes: exchanges
// that a model is answering just then can still be saved, and deletions, which
// have to write as well, can make room. It is as much as the write-ahead log
// grows by before it is folded into the database (checkpointPages of 4 KiB).
const reserveSize = 16 << 20

// reserve makes sure that there is a reserve.
func (d *disk) reserve() error {
	if d.reserved {
		return nil
	}
	name := d.file + "-reserve"
	if info, err := os.Stat(name); err == nil && info.Size() == reserveSize {
		d.reserved = true
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, reserveSize), f.Close()); err != nil {
		_ = os.Remove(name) // or it would take up what is left
		return err
	}
	d.reserved = true
	return nil
}

// release gives the reserve to whoever writes next, and reports whether there
// was one.
func (d *disk) release() bool {
	name := d.file + "-reserve"
	if !d.reserved { // one of an earlier process, which this one hasn't looked for yet
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			return false
		}
	}
	d.reserved = false
	return os.Remove(name) == nil
}

// writeOut fills a file with so many bytes.
func writeOut(f *os.File, size int64) error {
	zeros := make([]byte, 64<<10)
	for n := int64(0); n < size; n += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			return err
		}
	}
	return nil
}
