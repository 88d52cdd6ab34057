package embed

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

// encoded is v as a router sends it in base64.
func encoded(v ...float32) string {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
}

func TestRepliesOfAllKindsAreRead(t *testing.T) {
	for name, reply := range map[string]string{
		"numbers":        `{"data":[{"index":0,"embedding":[3,4]},{"index":1,"embedding":[0,-2e0]}]}`,
		"base64":         `{"data":[{"index":0,"embedding":` + encoded(3, 4) + `},{"index":1,"embedding":` + encoded(0, -2) + `}]}`,
		"mixed":          `{"data":[{"index":0,"embedding":` + encoded(3, 4) + `},{"index":1,"embedding":[0,-2]}]}`,
		"disorder":       `{"data":[{"index":1,"embedding":[0,-2]},{"index":0,"embedding":[3,4]}]}`,
		"no index":       `{"data":[{"embedding":[3,4]},{"embedding":[0,-2]}]}`,
		"null index":     `{"data":[{"index":null,"embedding":[3,4]},{"index":null,"embedding":[0,-2]}]}`,
		"of unit length": `{"data":[{"index":0,"embedding":[0.6,0.8]},{"index":1,"embedding":[0,-1]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseReply([]byte(reply), 2, 2)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0], []float32{.6, .8}) || !slices.Equal(got[1], []float32{0, -1}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestUnusableRepliesAreErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, reply := range map[string]string{
		"not JSON":        `<html>`,
		"no data":         `{"object":"list"}`,
		"too few":         `{"data":[{"index":0,"embedding":[3,4]}]}`,
		"too many":        `{"data":[{"embedding":[3,4]},{"embedding":[3,4]},{"embedding":[3,4]}]}`,
		"twice":           `{"data":[{"index":0,"embedding":[3,4]},{"index":0,"embedding":[3,4]}]}`,
		"out of range":    `{"data":[{"index":0,"embedding":[3,4]},{"index":2,"embedding":[3,4]}]}`,
		"negative":        `{"data":[{"index":-1,"embedding":[3,4]},{"index":0,"embedding":[3,4]}]}`,
		"dimension":       `{"data":[{"embedding":[3,4]},{"embedding":[3,4,5]}]}`,
		"no embedding":    `{"data":[{"embedding":[3,4]},{}]}`,
		"damaged base64":  `{"data":[{"embedding":[3,4]},{"embedding":"!!"}]}`,
		"half a number":   `{"data":[{"embedding":[3,4]},{"embedding":"AAAA"}]}`,
		"zero vector":     `{"data":[{"embedding":[3,4]},{"embedding":[0,0]}]}`,
		"not a number":    `{"data":[{"embedding":[3,4]},{"embedding":` + encoded(nan, 1) + `}]}`,
		"infinite number": `{"data":[{"embedding":[3,4]},{"embedding":` + encoded(float32(math.Inf(1)), 1) + `}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseReply([]byte(reply), 2, 2); !errors.Is(err, ErrReply) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
