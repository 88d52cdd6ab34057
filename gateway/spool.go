package gateway

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolHeld is up to where an upload is held in memory, bytes. Most files are
// smaller.
const spoolHeld = 1 << 20

// spool is an upload, from when it comes in until it is stored: in memory, or where
// it is large in a file on disk. That has no name where the operating system allows
// it, so that nothing is left behind whatever happens.
type spool struct {
	io.ReaderAt
	size   int64
	digest [sha256.Size]byte
	file   *os.File // nil: it is in memory
	named  bool
}

// errSpool says that there was no room for an upload on this machine.
var errSpool = errors.New("keep an upload in the folder for temporary files")

// newSpool reads an upload of at most so many bytes; of a longer one, a byte more.
func newSpool(from io.Reader, most int64) (_ *spool, err error) {
	hash := sha256.New()
	from = io.TeeReader(io.LimitReader(from, most+1), hash)
	var held bytes.Buffer
	s := &spool{}
	s.size, err = io.CopyN(&held, from, spoolHeld)
	switch {
	case errors.Is(err, io.EOF):
		s.ReaderAt = bytes.NewReader(held.Bytes())
	case err != nil:
		return nil, err
	default:
		if err := s.spill(&held, from); err != nil {
			s.close()
			return nil, err
		}
	}
	hash.Sum(s.digest[:0])
	return s, nil
}

// spill moves what is held, and all that follows it, to a file.
func (s *spool) spill(held *bytes.Buffer, from io.Reader) (err error) {
	if s.file, err = os.CreateTemp("", "backstory-*"); err != nil {
		return fmt.Errorf("%w: %w", errSpool, err)
	}
	s.ReaderAt, s.named = s.file, os.Remove(s.file.Name()) != nil
	to := &spoolWriter{to: s.file}
	if _, err = held.WriteTo(to); err == nil {
		var n int64
		n, err = io.Copy(to, from)
		s.size += n
	}
	if to.err != nil {
		return fmt.Errorf("%w: %w", errSpool, to.err)
	}
	return err
}

// spoolWriter remembers that writing failed, and not reading.
type spoolWriter struct {
	to  io.Writer
	err error
}

func (w *spoolWriter) Write(p []byte) (n int, err error) {
	n, w.err = w.to.Write(p)
	return n, w.err
}

// Size is the length of the upload.
func (s *spool) Size() int64 { return s.size }

// reader reads it from its beginning.
func (s *spool) reader() io.Reader { return io.NewSectionReader(s, 0, s.size) }

func (s *spool) close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close() // nothing in it is needed any more
	if s.named {
		_ = os.Remove(s.file.Name())
	}
}
