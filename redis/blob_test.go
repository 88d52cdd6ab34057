package redis

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/store"
)

// Originals go from one version to another, while both run on one server: the
// older ones compress and decompress them whole.
func TestOlderVersionsShareOriginals(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	text := make([]byte, 0, 12<<20)
	for i := 0; len(text) < 12<<20-30; i++ {
		text = strconv.AppendInt(append(text, " item "...), int64(i)*2654435761, 36)
	}
	for name, content := range map[string][]byte{"short": []byte("short"), "long": text} {
		if _, err := s.CreateFile(ctx, of("a"), store.File{ID: name, Name: name}, bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		key := s.layout.file(blobKey, of("a"), name)
		var packed []byte
		parts := int(s.client.HLen(ctx, key).Val())
		for i := range parts {
			packed = append(packed, s.client.HGet(ctx, key, strconv.Itoa(i)).Val()...)
		}
		if got, err := decoder.DecodeAll(packed, nil); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: an older version reads %d bytes, %v", name, len(got), err)
		}
		if name == "long" && (parts < 3 || len(packed) > len(content)*9/10) {
			t.Errorf("%d parts with %d bytes", parts, len(packed))
		}

		s.client.Del(ctx, key)
		i := 0
		for part := range slices.Chunk(encoder.EncodeAll(content, nil), partSize) {
			s.client.HSet(ctx, key, strconv.Itoa(i), part)
			i++
		}
		s.client.HSet(ctx, s.layout.file(fileKey, of("a"), name), "parts", i)
		from, err := s.Content(ctx, of("a"), name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(from); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: of an older version, got %d bytes, %v", name, len(got), err)
		}
		s.client.HSet(ctx, key, "0", "nonsense")
		if from, err = s.Content(ctx, of("a"), name); err == nil {
			_, err = io.ReadAll(from)
		}
		if err == nil {
			t.Errorf("%s: what is corrupt was read", name)
		}
	}
}
