package store

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"
)

func message(json string, tokens int, digest string) Message {
	m := Message{JSON: []byte(json), Tokens: tokens}
	copy(m.Digest[:], digest)
	return m
}

// at is a message with a time of its own, in milliseconds since 1970.
func at(ms int64) Message {
	m := message("{}", 3, "t")
	m.Created = time.UnixMilli(ms).UTC()
	return m
}

func equal(a, b []Message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].JSON, b[i].JSON) || a[i].Tokens != b[i].Tokens || a[i].Digest != b[i].Digest || !a[i].Created.Equal(b[i].Created) {
			return false
		}
	}
	return true
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	for name, messages := range map[string][]Message{
		"none":           {},
		"one":            {message(`{"role":"user","content":"hi"}`, 7, "a")},
		"an exchange":    {message(`{"role":"user"}`, 1, "a"), message(`{ "role" : "assistant" }`, 300, "b"), message(`{}`, 0, "")},
		"separators":     {message(`{"content":"],[,"}`, 5, "x"), message(`{"content":"]"}`, 5, "y")},
		"not even JSON":  {message("", 0, ""), message("\x00\xff", 1, "z"), message("", 0, "")},
		"extreme tokens": {message("{}", math.MaxInt, ""), message("{}", math.MinInt, ""), message("{}", -1, "")},
		"times":          {at(1_700_000_000_123), message("{}", 1, ""), at(0), at(-1), at(-2), at(1)},
		"long":           {message(`"`+string(bytes.Repeat([]byte("x"), 100_000))+`"`, 12_500, "l")},
	} {
		t.Run(name, func(t *testing.T) {
			array, meta := EncodeMessages(messages)
			got, err := DecodeMessages(array, meta)
			if err != nil || !equal(got, messages) {
				t.Fatalf("got %d messages, %v; want the %d encoded", len(got), err, len(messages))
			}
		})
	}
}

func TestMessagesKeptBeforeTheyHadTimesAreRead(t *testing.T) {
	meta := append([]byte{1}, "0123456789abcdef\x0e\x02"...)
	got, err := DecodeMessages([]byte("[{}]"), meta)
	if want := []Message{message("{}", 7, "0123456789abcdef")}; err != nil || !equal(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestEncodedMessagesAreAJSONArray(t *testing.T) {
	array, _ := EncodeMessages([]Message{message(`{"a":1}`, 1, "a"), message(`{"b":[2]}`, 2, "b")})
	if want := `[{"a":1},{"b":[2]}]`; string(array) != want || !json.Valid(array) {
		t.Fatalf("got %s, want %s", array, want)
	}
}

func TestAppendingToOneMessageLeavesTheNextAlone(t *testing.T) {
	array, meta := EncodeMessages([]Message{message(`{"a":1}`, 1, "a"), message(`{"b":2}`, 2, "b")})
	got, err := DecodeMessages(array, meta)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(got[0].JSON, "over"...)
	if string(got[1].JSON) != `{"b":2}` {
		t.Fatalf("the second message became %s", got[1].JSON)
	}
}

func TestCorruptMessagesAreAnError(t *testing.T) {
	array, meta := EncodeMessages([]Message{message(`{"a":1}`, 1, "a"), message(`{"b":2}`, 2, "b")})
	for i := range array {
		if _, err := DecodeMessages(array[:i], meta); err == nil {
			t.Errorf("array cut to %d bytes was accepted", i)
		}
	}
	for i := range meta {
		if _, err := DecodeMessages(array, meta[:i]); err == nil {
			t.Errorf("metadata cut to %d bytes was accepted", i)
		}
	}
	timedArray, timed := EncodeMessages([]Message{at(1_700_000_000_123)})
	for i := range timed {
		if _, err := DecodeMessages(timedArray, timed[:i]); err == nil {
			t.Errorf("metadata with times cut to %d bytes was accepted", i)
		}
	}
	huge := append([]byte{metaPlain}, make([]byte, 16)...)
	huge = append(huge, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)
	for name, c := range map[string]struct{ array, meta []byte }{
		"unknown version": {array, append([]byte{9}, meta[1:]...)},
		"trailing bytes":  {append(bytes.Clone(array), ' '), meta},
		"no comma":        {bytes.Replace(array, []byte(","), []byte(" "), 1), meta},
		"huge length":     {array, huge},
	} {
		if _, err := DecodeMessages(c.array, c.meta); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzDecodeMessages(f *testing.F) {
	array, meta := EncodeMessages([]Message{message(`{"a":1}`, 1, "a"), message(`{"b":2}`, 300, "b")})
	f.Add(array, meta)
	f.Add([]byte("[]"), []byte{metaPlain})
	f.Add([]byte("[]"), []byte{})
	array, meta = EncodeMessages([]Message{at(0), at(1_700_000_000_123), message("{}", 1, "")})
	f.Add(array, meta)
	f.Fuzz(func(t *testing.T, array, meta []byte) {
		messages, err := DecodeMessages(array, meta)
		if err != nil {
			return
		}
		// What decodes says the same when it is encoded again. The bytes of
		// meta may differ: a varint can be written longer than need be.
		again, packed := EncodeMessages(messages)
		if !bytes.Equal(again, array) {
			t.Fatalf("%q became %q", array, again)
		}
		if decoded, err := DecodeMessages(again, packed); err != nil || !equal(decoded, messages) {
			t.Fatalf("not the same when encoded again: %v", err)
		}
	})
}

func TestRefsComeBackAsTheyWere(t *testing.T) {
	for _, c := range []struct {
		passages []ChunkRef
		recalled []MessageRef
	}{
		{},
		{passages: []ChunkRef{{"file-1", 0}}},
		{recalled: []MessageRef{{Seq: 1}}},
		{[]ChunkRef{{"file-1", 12}, {"\x00\xff", math.MinInt}}, []MessageRef{{1 << 40, 3, 0, 70_000}, {math.MaxInt64, -1, math.MaxInt, math.MinInt}}},
	} {
		b := EncodeRefs(c.passages, c.recalled)
		passages, recalled, err := DecodeRefs(b)
		if err != nil || !slices.Equal(passages, c.passages) || !slices.Equal(recalled, c.recalled) {
			t.Errorf("got %v, %v, %v; want %v", passages, recalled, err, c)
		}
		// Cut anywhere but between two, it is an error.
		for i := range b {
			passages, recalled, err := DecodeRefs(b[:i])
			if err == nil && (!slices.Equal(passages, c.passages[:len(passages)]) || !slices.Equal(recalled, c.recalled[:len(recalled)])) {
				t.Errorf("cut to %d bytes: got %v, %v", i, passages, recalled)
			}
		}
	}
	if _, _, err := DecodeRefs([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'}); err == nil {
		t.Error("a huge length was accepted")
	}
}

func FuzzDecodeRefs(f *testing.F) {
	f.Add(EncodeRefs([]ChunkRef{{"file-1", 12}, {"x", -1}}, []MessageRef{{1, 2, 3, 4}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		passages, recalled, err := DecodeRefs(b)
		if err != nil {
			return
		}
		again, refs, err := DecodeRefs(EncodeRefs(passages, recalled))
		if err != nil || !slices.Equal(again, passages) || !slices.Equal(refs, recalled) {
			t.Fatalf("not the same when encoded again: %v", err)
		}
	})
}
