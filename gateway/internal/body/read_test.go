package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
)

// A buffer grows with what arrives, never by what was promised alone.
func TestABodyTakesMemoryAsItArrives(t *testing.T) {
	t.Parallel()
	const all, limit = 10 << 20, 64 << 20
	text := bytes.Repeat([]byte("0123456789"), all/10)
	for _, promised := range []int64{0, int64(len(text)), limit} {
		t.Run(fmt.Sprint("promised ", promised), func(t *testing.T) {
			arrived, grown := int64(0), 0
			r := readerFunc(func(p []byte) (int, error) {
				n := copy(p, text[arrived:min(int(arrived)+1000, len(text))])
				if arrived += int64(n); n == 0 {
					return 0, io.EOF
				}
				return n, nil
			})
			got, err := ReadAll(r, limit, promised, func(size int64) error {
				grown++
				if size > Small && size > 4*arrived {
					t.Errorf("%d bytes when %d had arrived", size, arrived)
				}
				return nil
			})
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("read %d bytes: %v", len(got), err)
			}
			if grown > 14 {
				t.Errorf("it was copied %d times", grown)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestABodyForWhichThereIsNoRoomIsNotRead(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	read := 0
	_, err := ReadAll(readerFunc(func(p []byte) (int, error) { read += len(p); return len(p), nil }), 1<<30, 1<<20, func(size int64) error {
		if size > 100_000 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || read > 100_000 {
		t.Errorf("%d bytes were read: %v", read, err)
	}
}

func TestABodyThatIsReadIsItsBytes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 4 << 10, Small - 1, Small, Small + 1, 4*Small + 1, 1 << 20} {
		text := bytes.Repeat([]byte("x"), n)
		for _, promised := range []int64{-1, int64(n)} {
			r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(bytes.NewReader(text)))
			r.ContentLength = promised
			got, err := Read(httptest.NewRecorder(), r, 1<<20, func(int64) error { return nil })
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes, %d promised: read %d: %v", n, promised, len(got), err)
			}
		}
	}
}
