package store

import (
	"encoding/binary"
	"errors"
)

// errCorrupt says that something stored can't be read back. It tells nothing of
// what they hold.
var errCorrupt = errors.New("stored data is corrupt")

// metaVersion opens the packed metadata, so that the layout can change.
const metaVersion = 1

// EncodeMessages packs messages for keeping: array is a JSON array of them,
// byte for byte, for whoever looks at the store with its own tools; meta holds
// each one's digest, token count and length, so that reading parses no JSON.
func EncodeMessages(messages []Message) (array, meta []byte) {
	size := 2
	for i := range messages {
		size += len(messages[i].JSON) + 1
	}
	array = append(make([]byte, 0, size), '[')
	meta = append(make([]byte, 0, 1+len(messages)*(len(Digest{})+6)), metaVersion)
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, m.JSON...)
		meta = append(meta, m.Digest[:]...)
		meta = binary.AppendVarint(meta, int64(m.Tokens))
		meta = binary.AppendUvarint(meta, uint64(len(m.JSON)))
	}
	return append(array, ']'), meta
}

// DecodeMessages undoes EncodeMessages. The messages share array's memory,
// each confined to its own part of it.
func DecodeMessages(array, meta []byte) ([]Message, error) {
	if len(meta) == 0 || meta[0] != metaVersion || len(array) < 2 || array[0] != '[' {
		return nil, errCorrupt
	}
	meta, array = meta[1:], array[1:]
	messages := make([]Message, 0, len(meta)/(len(Digest{})+2))
	for len(meta) > 0 {
		var m Message
		length, rest, ok := decodeMeta(&m, meta)
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
func decodeMeta(m *Message, meta []byte) (length uint64, rest []byte, ok bool) {
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
	return length, meta[n:], true
}

// EncodeRefs packs the names of chunks for keeping; of none it is nil.
func EncodeRefs(refs []ChunkRef) []byte {
	var b []byte
	for _, r := range refs {
		b = binary.AppendUvarint(b, uint64(len(r.FileID)))
		b = append(b, r.FileID...)
		b = binary.AppendVarint(b, int64(r.N))
	}
	return b
}

// DecodeRefs undoes EncodeRefs.
func DecodeRefs(b []byte) ([]ChunkRef, error) {
	var refs []ChunkRef
	for len(b) > 0 {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return nil, errCorrupt
		}
		id, rest := b[n:n+int(length)], b[n+int(length):]
		chunk, n := binary.Varint(rest)
		if n <= 0 || int64(int(chunk)) != chunk {
			return nil, errCorrupt
		}
		refs = append(refs, ChunkRef{FileID: string(id), N: int(chunk)})
		b = rest[n:]
	}
	return refs, nil
}
