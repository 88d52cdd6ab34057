// Package wordvec tells how similar English words are in meaning. It holds the
// vectors of some 19,500 word stems, those of the 30,000 most frequent words of
// GloVe (Pennington, Socher, Manning: GloVe: Global Vectors for Word
// Representation, 2014; 6 billion tokens, 100 dimensions, under the Public
// Domain Dedication and License), centred, reduced to 64 dimensions by their
// principal components, and held in a byte each. The command in gen makes them.
package wordvec

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
)

const (
	// Dims is how many dimensions a vector has.
	Dims = 64
	// Unit is the length of all vectors, up to rounding.
	Unit = 160
)

// words is the length of the stems' text (4 bytes, little-endian), the stems,
// rising, with a line feed between two, and their vectors.
//
//go:embed words.bin
var words string

var stems = sync.OnceValue(func() []string {
	n := binary.LittleEndian.Uint32([]byte(words[:4]))
	return strings.Split(words[4:4+n], "\n")
})

// ID is a known word; 0 stands for an unknown one.
type ID uint16

// Find returns the ID of a stem, as terms.Stem returns it; 0 where it isn't known.
func Find(stem string) ID {
	i, ok := slices.BinarySearch(stems(), stem)
	if !ok {
		return 0
	}
	return ID(i + 1)
}

// Vector returns a word's vector, each byte an int8; empty for 0.
func (id ID) Vector() string {
	if id == 0 {
		return ""
	}
	end := len(words) - (len(stems())-int(id))*Dims
	return words[end-Dims : end]
}
