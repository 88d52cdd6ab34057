package store

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// errCorrupt says that something stored can't be read back. It tells nothing of
// what they hold.
var errCorrupt = errors.New("stored data is corrupt")

// What opens the packed metadata, so that the layout can change. Messages of
// which none has a time of its own, as nearly all, take no room for it.
const (
	metaPlain = 1
	metaTimes = 2 // each entry ends with the message's time
)

// EncodeMessages packs messages for keeping: array is a JSON array of them,
// byte for byte, for whoever looks at the store with its own tools; meta holds
// each one's digest, token count, length and time, so that reading parses no
// JSON.
func EncodeMessages(messages []Message) (array, meta []byte) {
	size := 2
	for i := range messages {
		size += len(messages[i].JSON) + 1
	}
	array = append(make([]byte, 0, size), '[')
	meta = append(make([]byte, 0, 1+len(messages)*(len(Digest{})+6)), metaPlain)
	timed := slices.ContainsFunc(messages, func(m Message) bool { return !m.Created.IsZero() })
	if timed {
		meta[0] = metaTimes
	}
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, m.JSON...)
		meta = append(meta, m.Digest[:]...)
		meta = binary.AppendVarint(meta, int64(m.Tokens))
		meta = binary.AppendUvarint(meta, uint64(len(m.JSON)))
		if timed {
			meta = appendTime(meta, m.Created)
		}
	}
	return append(array, ']'), meta
}

// DecodeMessages undoes EncodeMessages. The messages share array's memory,
// each confined to its own part of it.
func DecodeMessages(array, meta []byte) ([]Message, error) {
	if len(meta) == 0 || meta[0] != metaPlain && meta[0] != metaTimes || len(array) < 2 || array[0] != '[' {
		return nil, errCorrupt
	}
	timed := meta[0] == metaTimes
	meta, array = meta[1:], array[1:]
	messages := make([]Message, 0, len(meta)/(len(Digest{})+2))
	for len(meta) > 0 {
		var m Message
		length, rest, ok := decodeMeta(&m, meta, timed)
		// Whatever follows a message, a comma or the closing bracket, is there too.
		if !ok || length >= uint64(len(array)) {
			return nil, errCorrupt
		}
		m.JSON = array[:length:length]
		array, meta = array[length:], rest
		if len(meta) > 0 {
			if array[0] != ',' {
				return nil, errCorrupt
			}
			array = array[1:]
		}
		messages = append(messages, m)
	}
	if len(array) != 1 || array[0] != ']' {
		return nil, errCorrupt
	}
	return messages, nil
}

// decodeMeta reads one message's entry of meta into m, and returns the
// message's length and the entries that follow.
func decodeMeta(m *Message, meta []byte, timed bool) (length uint64, rest []byte, ok bool) {
	if len(meta) < len(m.Digest) {
		return 0, nil, false
	}
	meta = meta[copy(m.Digest[:], meta):]
	tokens, n := binary.Varint(meta)
	if n <= 0 || int64(int(tokens)) != tokens {
		return 0, nil, false
	}
	m.Tokens, meta = int(tokens), meta[n:]
	length, n = binary.Uvarint(meta)
	if n <= 0 {
		return 0, nil, false
	}
	meta = meta[n:]
	if timed {
		if m.Created, n = decodeTime(meta); n <= 0 {
			return 0, nil, false
		}
		meta = meta[n:]
	}
	return length, meta, true
}

// appendTime packs a time: 0 for none, else the milliseconds since 1970, where
// those from 0 on are one more, to leave the 0 free.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	n := t.UnixMilli()
	if n >= 0 {
		n++
	}
	return binary.AppendVarint(b, n)
}

// decodeTime undoes appendTime. n is as of binary.Varint.
func decodeTime(b []byte) (t time.Time, n int) {
	v, n := binary.Varint(b)
	if v > 0 {
		v--
	} else if v == 0 {
		return t, n
	}
	return time.UnixMilli(v).UTC(), n
}

// EncodeRefs packs what an exchange's user message was given for keeping; of
// nothing it is nil. No file has an empty ID: what would be its length, 0, begins
// the name of a message instead.
func EncodeRefs(passages []ChunkRef, recalled []MessageRef) []byte {
	var b []byte
	for _, r := range passages {
		b = binary.AppendUvarint(b, uint64(len(r.FileID)))
		b = append(b, r.FileID...)
		b = binary.AppendVarint(b, int64(r.N))
	}
	for _, r := range recalled {
		b = binary.AppendUvarint(b, 0)
		for _, n := range []int64{r.Seq, int64(r.N), int64(r.From), int64(r.To)} {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

// DecodeRefs undoes EncodeRefs.
func DecodeRefs(b []byte) (passages []ChunkRef, recalled []MessageRef, err error) {
	for len(b) > 0 {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return nil, nil, errCorrupt
		}
		id, rest := b[n:n+int(length)], b[n+int(length):]
		numbers := make([]int64, 1, 4)
		if length == 0 {
			numbers = numbers[:4]
		}
		if rest = varints(rest, numbers); rest == nil {
			return nil, nil, errCorrupt
		}
		if length == 0 {
			recalled = append(recalled, MessageRef{numbers[0], int(numbers[1]), int(numbers[2]), int(numbers[3])})
		} else {
			passages = append(passages, ChunkRef{FileID: string(id), N: int(numbers[0])})
		}
		b = rest
	}
	return passages, recalled, nil
}

// varints reads numbers off the front of b, and returns what follows them; nil
// where they aren't there or no int could hold one.
func varints(b []byte, numbers []int64) []byte {
	for i := range numbers {
		v, n := binary.Varint(b)
		if n <= 0 || int64(int(v)) != v {
			return nil
		}
		numbers[i], b = v, b[n:]
	}
	return b
}
