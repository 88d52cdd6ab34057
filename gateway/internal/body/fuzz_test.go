package body_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/gateway/internal/body"
	"github.com/backstory-proxy/backstory/openai"
)

func gzipped(p []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(p)
	_ = z.Close()
	return b.Bytes()
}

func zstded(p []byte) []byte {
	z, _ := zstd.NewWriter(nil)
	return z.EncodeAll(p, nil)
}

// FuzzRead reads what claims to be packed: nothing gets larger than it may, and
// every error is one for the client. What was packed by ourselves is the same again.
func FuzzRead(f *testing.F) {
	for _, p := range []string{"", "{}", "hello, hello, hello"} {
		f.Add([]byte(p), uint16(1), false)
		f.Add(gzipped([]byte(p)), uint16(1), false)
		f.Add(zstded([]byte(p)), uint16(1000), true)
	}
	f.Add(gzipped(bytes.Repeat([]byte("A"), 3<<20)), uint16(1), false)
	f.Fuzz(func(t *testing.T, p []byte, times uint16, chunked bool) {
		const most = 4 << 20
		read := func(coding string, packed []byte) ([]byte, error) {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(packed))
			if chunked {
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(packed)), -1
			}
			r.Header.Set("Content-Encoding", coding)
			got, err := body.Read(httptest.NewRecorder(), r, most, func(int64) error { return nil })
			var e *openai.Error
			if err != nil && (!errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusRequestEntityTooLarge) {
				t.Fatalf("error %v", err)
			}
			if err == nil && len(got) > max(1<<20, 12*len(packed)) {
				t.Fatalf("%d bytes from %d", len(got), len(packed))
			}
			return got, err
		}
		for _, coding := range []string{"gzip", "zstd"} {
			_, _ = read(coding, p)
		}
		plain := bytes.Repeat(p, 1+int(times)%2000)
		if len(plain) > most {
			return
		}
		for coding, pack := range map[string]func([]byte) []byte{"gzip": gzipped, "zstd": zstded} {
			packed := pack(plain)
			got, err := read(coding, packed)
			allowed := len(plain) <= max(1<<20, 12*len(packed))
			if (err == nil) != allowed && len(packed) > 0 || err == nil && !bytes.Equal(got, plain) {
				t.Fatalf("%s of %d bytes, packed %d: read %d, %v", coding, len(plain), len(packed), len(got), err)
			}
		}
	})
}
