package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// originals is a store that counts the bytes of originals that are read of it, and
// how often files are listed.
type originals struct {
	*sqlite.Store
	path         string
	read, listed atomic.Int64
}

func (m *originals) ListFiles(ctx context.Context, scope store.Scope, q store.FileQuery) ([]store.File, error) {
	m.listed.Add(1)
	return m.Store.ListFiles(ctx, scope, q)
}

func (m *originals) open(embed.Embedder) (s store.Store, err error) {
	m.Store, err = sqlite.Open(context.Background(), m.path, sqlite.Options{})
	return m, err
}

func (m *originals) Content(ctx context.Context, scope store.Scope, id string) (io.ReadCloser, error) {
	from, err := m.Store.Content(ctx, scope, id)
	return struct {
		io.Reader
		io.Closer
	}{&countingReader{from, &m.read}, from}, err
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// keep adds a file of the tenant acme, of which nothing is indexed.
func (m *originals) keep(t *testing.T, content string) (id string) {
	t.Helper()
	f, err := m.CreateFile(t.Context(), store.Scope{Tenant: "acme"}, store.File{
		ID: "file-a", Name: "a.txt", Purpose: "assistants", Bytes: int64(len(content)), Created: time.Now(), Status: store.FileProcessed,
	}, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return f.ID
}

func TestADownloadIsReadAsTheClientReadsIt(t *testing.T) {
	t.Parallel()
	m := &originals{path: filepath.Join(t.TempDir(), "b.db")}
	s := start(t, options{upstream: newFake(t).URL, store: m.open})
	const size = 24 << 20 // far more than the buffers of a connection
	content := strings.Repeat("The same line.\n", size/15)
	id := m.keep(t, content)
	const downloads = 3
	var stalled []*http.Response
	for range downloads {
		r, err := s.client.Do(s.request(http.MethodGet, "/files/"+id+"/content", acme, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if _, err := io.ReadFull(r.Body, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, r)
	}
	if n := m.read.Load(); n > downloads*size/2 {
		t.Errorf("%d bytes were read for clients that took one each", n)
	}
	for _, r := range stalled {
		rest, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(rest, []byte(content)[1:]) {
			t.Errorf("the rest: %d bytes, %v", len(rest), err)
		}
	}
}

func TestADownloadOfADeletedFileBreaksOff(t *testing.T) {
	t.Parallel()
	m := &originals{path: filepath.Join(t.TempDir(), "b.db")}
	s := start(t, options{upstream: newFake(t).URL, store: m.open})
	id := m.keep(t, strings.Repeat("The same line.\n", 3<<20))
	r, err := s.client.Do(s.request(http.MethodGet, "/files/"+id+"/content", acme, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadFull(r.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.ok(s.do(s.request(http.MethodDelete, "/files/"+id, acme, nil)))
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		t.Error("it seems to be whole")
	}
}

func TestUploadsLeaveNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := start(t, options{upstream: newFake(t).URL, adjust: func(o *gateway.Options) { o.MaxFile = 1 << 20 }})
	long := strings.Repeat("The same line.\n", 40_000)
	s.ok(s.upload(acme, "a.txt", long))
	s.ok(s.upload(acme, "b.txt", long)) // the same under another name
	s.ok(s.upload(acme, "a.txt", long)) // there already
	if r := s.upload(acme, "c.txt", long+long); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", r.status)
	}
	if r := s.upload(acme, "d.png", "\x89PNG\r\n\x1a\n"+long); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("status %d", r.status)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "gone"))
	if r := s.upload(acme, "e.txt", long); r.status != http.StatusInternalServerError {
		t.Errorf("without a folder for temporary files: status %d, %s", r.status, r.body)
	}
	s.ok(s.upload(acme, "f.txt", "A short file needs none."))
}
