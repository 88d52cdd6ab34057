package gateway

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/backstory-proxy/backstory/gateway/internal/admission"
	"github.com/backstory-proxy/backstory/gateway/internal/body"
)

// spoolHeld is up to where an upload is held in memory, bytes: it takes no more than
// a chat that isn't counted either.
const spoolHeld = body.Small

// spool is an upload, from when it comes in until it is stored: in memory, or where
// it is large in a file on disk. That has no name where the operating system allows
// it, so that nothing is left behind whatever happens.
type spool struct {
	io.ReaderAt
	size   int64
	digest [sha256.Size]byte
	file   *os.File // nil: it is in memory
	named  bool
	claim  *admission.Claim // on the disk
}

// errSpool says that there was no room for an upload on this machine.
var errSpool = errors.New("keep an upload in the folder for temporary files")

// newSpool reads an upload of at most so many bytes; of a longer one, a byte more.
// Before it takes more of the disk it asks room, whose errors are returned as they
// are. The claim, on which room is given, is released with the spool.
func newSpool(from io.Reader, most int64, claim *admission.Claim, room func(int64) error) (_ *spool, err error) {
	hash := sha256.New()
	from = io.TeeReader(io.LimitReader(from, most+1), hash)
	var held bytes.Buffer
	s := &spool{claim: claim}
	s.size, err = io.CopyN(&held, from, spoolHeld)
	switch {
	case errors.Is(err, io.EOF):
		s.ReaderAt = bytes.NewReader(held.Bytes())
	case err != nil:
		return nil, err
	default:
		if err := s.spill(&held, from, room); err != nil {
			s.close()
			return nil, err
		}
	}
	hash.Sum(s.digest[:0])
	return s, nil
}

// spill moves what is held, and all that follows it, to a file.
func (s *spool) spill(held *bytes.Buffer, from io.Reader, room func(int64) error) (err error) {
	if s.file, err = os.CreateTemp("", "backstory-*"); err != nil {
		return fmt.Errorf("%w: %w", errSpool, err)
	}
	s.ReaderAt, s.named = s.file, os.Remove(s.file.Name()) != nil
	to := &spoolWriter{to: s.file, room: room}
	if _, err = held.WriteTo(to); err == nil {
		var n int64
		n, err = io.Copy(to, from)
		s.size += n
	}
	switch {
	case to.refused != nil:
		return to.refused
	case to.err != nil:
		return fmt.Errorf("%w: %w", errSpool, to.err)
	}
	return err
}

// spoolWriter asks for room before it writes, and remembers that this failed, or
// writing did, and not reading.
type spoolWriter struct {
	to           io.Writer
	room         func(int64) error
	n            int64
	refused, err error
}

func (w *spoolWriter) Write(p []byte) (n int, err error) {
	if w.refused = w.room(w.n + int64(len(p))); w.refused != nil {
		return 0, w.refused
	}
	n, w.err = w.to.Write(p)
	w.n += int64(n)
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
	defer s.claim.Release()
	_ = s.file.Close() // nothing in it is needed any more
	if s.named {
		_ = os.Remove(s.file.Name())
	}
}
