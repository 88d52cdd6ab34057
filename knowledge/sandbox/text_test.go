package sandbox

import (
	"bufio"
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// FuzzBlocks reads what a child that was taken over may write.
func FuzzBlocks(f *testing.F) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	_ = writeBlock(w, extract.Block{Kind: extract.Heading, Level: 2, Page: 300, Text: "text é"}) // to memory
	_ = w.Flush()
	f.Add(b.Bytes())
	f.Add([]byte("\x03\x00\x00\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x02\x00\x00\x01a")) // a heading of no level
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		for {
			b, err := readBlock(r)
			if err != nil {
				return
			}
			if !utf8.ValidString(b.Text) || b.Kind > extract.Sheet || b.Level > 6 || b.Page < 0 || b.Kind == extract.Heading && b.Level == 0 || b.Kind == extract.Sheet && b.Level != 1 {
				t.Fatalf("%+v", b)
			}
		}
	})
}
