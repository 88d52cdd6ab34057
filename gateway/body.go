package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/openai"
)

// readBody reads the whole body of a request, up to the limit.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	packed := r.Header.Get("Content-Encoding") != ""
	if err := openBody(w, r, g.options.MaxBody); err != nil {
		return nil, err
	}
	var body []byte
	var err error
	if n := r.ContentLength; n > 0 && n <= g.options.MaxBody && !packed {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(r.Body)
	}
	return body, bodyError(err)
}

// acceptedEncodings are the content codings that a body may come in. A client
// that sent another one is told (RFC 7694).
const acceptedEncodings = "gzip, zstd"

// maxWindow bounds what a zstd decoder keeps: more than what HTTP allows
// (RFC 9659) is refused.
const maxWindow = 8 << 20

// openBody prepares the body of a request to be read: unpacked where it is
// compressed, and bounded both packed and unpacked.
//
// The body must not be closed: see unclosed.
func openBody(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	var plain io.Reader
	switch encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return bodyError(err)
		}
		plain = z
	case "zstd":
		z, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return bodyError(err)
		}
		plain = z // with a concurrency of 1 there is nothing to close
	default:
		w.Header().Set("Accept-Encoding", acceptedEncodings)
		return openai.StatusError(http.StatusUnsupportedMediaType,
			"A request body with Content-Encoding %q can't be read; send it as it is, or as one of %s.", encoding, acceptedEncodings)
	}
	r.Header.Del("Content-Encoding")
	r.Body = http.MaxBytesReader(w, unclosed{plain}, most)
	return nil
}

// unclosed is a client's body that nobody closes but the server. Behind
// Caddy's own reader, net/http takes a body that was closed for one that was
// read, and what is left of it for the next request: whoever can write a body
// could then write requests in the name of others, where connections are shared.
// The proxy closes the body when the router answers before it has all of it.
type unclosed struct{ io.Reader }

func (unclosed) Close() error { return nil }

// bodyError says what an error of reading the body means.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return openai.StatusError(http.StatusRequestEntityTooLarge, "The request body is larger than %d bytes.", tooLarge.Limit)
	}
	return openai.Invalid("", "The request body could not be read to its end.")
}
