package embed

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tidwall/gjson"
)

// request is the body of POST /embeddings. Vectors are asked for in base64,
// which is a quarter of the bytes of decimal numbers and needs no parsing.
func (r *Router) request(batch []input) ([]byte, error) {
	texts := make([]string, len(batch))
	for i, in := range batch {
		texts[i] = in.text
	}
	body := struct {
		Model          string   `json:"model"`
		Input          []string `json:"input"`
		EncodingFormat string   `json:"encoding_format"`
		Dimensions     int      `json:"dimensions,omitempty"`
	}{Model: r.model, Input: texts, EncodingFormat: "base64"}
	if r.opts.SendDimensions {
		body.Dimensions = r.dimensions
	}
	return json.Marshal(body)
}

// parseReply returns the vectors of an embeddings reply in the order of the
// inputs. Routers may send numbers although base64 was asked for, in any
// order, or leave out the index; then the order is that of the inputs.
func parseReply(reply []byte, inputs, dimensions int) ([][]float32, error) {
	data := gjson.GetBytes(reply, "data")
	if !data.IsArray() {
		return nil, fmt.Errorf("%w: no data", ErrReply)
	}
	items := data.Array()
	if len(items) != inputs {
		return nil, fmt.Errorf("%w: %d vectors for %d inputs", ErrReply, len(items), inputs)
	}
	vectors := make([][]float32, inputs)
	for i, item := range items {
		at := i
		if index := item.Get("index"); index.Type == gjson.Number {
			at = int(index.Int())
		}
		if at < 0 || at >= inputs || vectors[at] != nil {
			return nil, fmt.Errorf("%w: index %d is out of range or comes twice", ErrReply, at)
		}
		v, err := parseVector(item.Get("embedding"))
		if err != nil {
			return nil, err
		}
		if len(v) != dimensions {
			return nil, fmt.Errorf("%w: the model's vectors have %d dimensions, and %d are configured", ErrReply, len(v), dimensions)
		}
		if !normalise(v) {
			return nil, fmt.Errorf("%w: a vector without length", ErrReply)
		}
		vectors[at] = v
	}
	return vectors, nil
}

// parseVector reads base64 of little-endian float32, or an array of numbers.
func parseVector(embedding gjson.Result) ([]float32, error) {
	switch {
	case embedding.Type == gjson.String:
		raw, err := base64.StdEncoding.DecodeString(embedding.Str)
		if err != nil || len(raw)%4 != 0 {
			return nil, fmt.Errorf("%w: damaged base64", ErrReply)
		}
		v := make([]float32, len(raw)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return v, nil
	case embedding.IsArray():
		var v []float32
		embedding.ForEach(func(_, x gjson.Result) bool {
			v = append(v, float32(x.Float()))
			return true
		})
		return v, nil
	}
	return nil, fmt.Errorf("%w: an embedding is neither base64 nor numbers", ErrReply)
}
