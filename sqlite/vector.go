package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"

	sqlite "modernc.org/sqlite"
)

func init() {
	sqlite.MustRegisterFunction("vdot", &sqlite.FunctionImpl{
		NArgs:         2,
		Deterministic: true,
		// The vectors are read where SQLite has them; none is kept.
		VolatileArgs: true,
		Scalar:       func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) { return vdot(args) },
	})
}

// vdot is the SQL function that multiplies two vectors: for vectors of unit
// length, the cosine.
func vdot(args []driver.Value) (driver.Value, error) {
	a, _ := args[0].([]byte)
	b, _ := args[1].([]byte)
	if len(a) != len(b) || len(a)%4 != 0 {
		return nil, fmt.Errorf("a vector of %d dimensions, where %d were asked for; index the files again", len(a)/4, len(b)/4)
	}
	// Four sums, since each addition waits for the one before it.
	var s0, s1, s2, s3 float32
	for len(a) >= 16 && len(b) >= 16 {
		s0 += float(a) * float(b)
		s1 += float(a[4:]) * float(b[4:])
		s2 += float(a[8:]) * float(b[8:])
		s3 += float(a[12:]) * float(b[12:])
		a, b = a[16:], b[16:]
	}
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float(a) * float(b)
		a, b = a[4:], b[4:]
	}
	return float64(s0+s1) + float64(s2+s3), nil
}

func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
