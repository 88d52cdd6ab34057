// Package body reads the bodies of clients' requests, and keeps others from doing
// so longer than they may.
package body

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/openai"
)

// Small is how large a body may be, in bytes, that is read before anything else is
// known of its request: nearly all chats are smaller, and as many of them as may be
// under way take little.
const Small = 64 << 10

// IsSmall reports whether a request says of its body that it is small.
func IsSmall(r *http.Request) bool {
	return r.ContentLength >= 0 && r.ContentLength <= Small && r.Header.Get("Content-Encoding") == ""
}

// Read reads the whole body of a request, unpacked, of at most so many bytes. Its
// errors are for the client, or come from room, which is asked before the buffer
// grows to a size: see ReadAll.
func Read(w http.ResponseWriter, r *http.Request, most int64, room func(int64) error) ([]byte, error) {
	promised := r.ContentLength
	if r.Header.Get("Content-Encoding") != "" {
		promised = 0
	} else if promised > most {
		return nil, Error(&http.MaxBytesError{Limit: most})
	}
	if err := Open(w, r, most); err != nil {
		return nil, err
	}
	return ReadAll(r.Body, most+1, promised, room)
}

// ReadAll reads to the end, or limit bytes. What was promised, 0 for nothing, only
// spares copies: the buffer is never more than four times what has arrived, beyond
// what is small. room is asked before it grows to a size; its errors are returned
// as they are, and those of reading as they are for the client.
func ReadAll(r io.Reader, limit, promised int64, room func(int64) error) ([]byte, error) {
	var content []byte
	size := int64(4 << 10)
	if promised > 0 {
		size = min(promised+1, Small) // one byte more, to see the end
	}
	for {
		if len(content) == cap(content) {
			size = min(size, limit)
			if err := room(size); err != nil {
				return nil, err
			}
			content = append(make([]byte, 0, size), content...)
			if promised >= size {
				size = min(4*size, promised+1)
			} else {
				size *= 2
			}
		}
		n, err := r.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case errors.Is(err, io.EOF) || int64(len(content)) >= limit:
			return content, nil
		case err != nil:
			return nil, Error(err)
		}
	}
}

// acceptedEncodings are the content codings that a body may come in. A client
// that sent another one is told (RFC 7694).
const acceptedEncodings = "gzip, zstd"

// maxWindow bounds what a zstd decoder keeps: more than what HTTP allows
// (RFC 9659) is refused.
const maxWindow = 8 << 20

// A packed body may have maxRatio times its size when unpacked, and unboundRatio
// bytes in any case. A conversation as JSON packs to a third or a fifth, one of
// messages with three words to a ninth; a million times the same letter packs to a
// thousandth, and costs as much as what it unpacks to.
const (
	maxRatio     = 12
	unboundRatio = 1 << 20
)

// Open prepares the body of a request to be read: unpacked where it is
// compressed, and bounded both packed and unpacked.
func Open(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	packed := &counted{Reader: r.Body, size: r.ContentLength}
	var plain io.Reader
	switch encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(packed)
		if err != nil {
			return Error(err)
		}
		plain = z
	case "zstd":
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return Error(err)
		}
		plain = z // with a concurrency of 1 there is nothing to close
	default:
		w.Header().Set("Accept-Encoding", acceptedEncodings)
		return openai.StatusError(http.StatusUnsupportedMediaType,
			"A request body with Content-Encoding %q can't be read; send it as it is, or as one of %s.", encoding, acceptedEncodings)
	}
	r.Header.Del("Content-Encoding")
	r.Body = http.MaxBytesReader(w, io.NopCloser(&unpacked{from: plain, packed: packed}), most)
	return nil
}

// counted is a packed body.
type counted struct {
	io.Reader
	read int64 // bytes so far
	size int64 // that the client announced; -1: none
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	return n, err
}

// errRatio says that a body unpacks to more than maxRatio times its size.
var errRatio = errors.New("the body unpacks to too much")

// unpacked is a packed body as it is unpacked.
type unpacked struct {
	from   io.Reader
	packed *counted
	n      int64 // bytes so far
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if u.n += int64(n); u.n > unboundRatio && u.n > maxRatio*max(u.packed.read, u.packed.size) {
		return 0, errRatio
	}
	return n, err
}

// Error says what an error of reading the body means.
func Error(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return openai.StatusError(http.StatusRequestTimeout, "The request body did not arrive in time.")
	case errors.Is(err, errRatio):
		return openai.StatusError(http.StatusRequestEntityTooLarge, "The request body decompresses to more than %d times its size; send it uncompressed.", maxRatio)
	case errors.As(err, &tooLarge):
		return openai.StatusError(http.StatusRequestEntityTooLarge, "The request body is larger than %d bytes.", tooLarge.Limit)
	}
	return openai.Invalid("", "The request body could not be read to its end.")
}
