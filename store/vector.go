package store

import (
	"context"
	"encoding/binary"
	"math"
)

// Vectors keeps what exchanges are about, as vectors, by which package memory
// recalls them: one for each exchange at most, of whatever embedder made it last.
// They are gone with their exchange, replaced or deleted, and with its session.
type Vectors interface {
	// PutVectors keeps vectors in place of those that the exchanges have.
	// Those of exchanges that aren't there, by Seq and by ID, are left out, so
	// that nothing comes back which was deleted meanwhile: it is no error.
	PutVectors(ctx context.Context, scope Scope, session string, list []ExchangeVector) error
	// Vectors returns the vectors of the exchanges with the given Seqs, in any
	// order and without ID, less those that have none.
	Vectors(ctx context.Context, scope Scope, session string, seqs []int64) ([]ExchangeVector, error)
}

// ExchangeVector is a vector of an exchange.
type ExchangeVector struct {
	Seq    int64
	ID     string // Exchange.ID
	Model  string // the embedder that made it: see embed.Embedder
	Vector SmallVector
}

// SmallVector is a vector in a byte per dimension: each is Scale times a whole
// number from -127 to 127. A cosine comes out right to about a thousandth.
type SmallVector struct {
	Scale  float32
	Values []int8
}

const most = math.MaxInt8

// Shrink returns the vector that is nearest to v; one without values, and
// therefore near to nothing, where v is empty, zero or not finite.
func Shrink(v []float32) SmallVector {
	var peak float32
	for _, x := range v {
		peak = max(peak, x, -x) // NaN, if one is NaN
	}
	scale := peak / most
	if !(scale > 0) || math.IsInf(float64(scale), 0) {
		return SmallVector{}
	}
	small := SmallVector{Scale: scale, Values: make([]int8, len(v))}
	for i, x := range v { // the quotient may come out a little above 127
		small.Values[i] = int8(min(max(math.RoundToEven(float64(x)/float64(scale)), -most), most))
	}
	return small
}

// Dot is the product of two vectors: for vectors of unit length, about their
// cosine. It is 0 where they aren't of the same length.
func (v SmallVector) Dot(w SmallVector) float64 {
	a, b := v.Values, w.Values
	if len(a) != len(b) {
		return 0
	}
	// Four sums, since each addition waits for the one before it. None can
	// overflow below half a million dimensions.
	var s0, s1, s2, s3 int32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += int32(a[0]) * int32(b[0])
		s1 += int32(a[1]) * int32(b[1])
		s2 += int32(a[2]) * int32(b[2])
		s3 += int32(a[3]) * int32(b[3])
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += int32(a[i]) * int32(b[i])
	}
	sum := int64(s0) + int64(s1) + int64(s2) + int64(s3)
	return float64(v.Scale) * float64(w.Scale) * float64(sum)
}

const scaleBytes = 4

// EncodeVector packs a vector for keeping.
func EncodeVector(v SmallVector) []byte {
	b := make([]byte, scaleBytes, scaleBytes+len(v.Values))
	binary.LittleEndian.PutUint32(b, math.Float32bits(v.Scale))
	for _, x := range v.Values {
		b = append(b, byte(x))
	}
	return b
}

// DecodeVector undoes EncodeVector.
func DecodeVector(b []byte) (SmallVector, error) {
	if len(b) < scaleBytes {
		return SmallVector{}, errCorrupt
	}
	v := SmallVector{Scale: math.Float32frombits(binary.LittleEndian.Uint32(b)), Values: make([]int8, len(b)-scaleBytes)}
	for i, x := range b[scaleBytes:] {
		v.Values[i] = int8(x)
	}
	return v, nil
}
