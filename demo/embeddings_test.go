package demo_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"testing"
)

type embeddings struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Model string
	Usage struct {
		Prompt int `json:"prompt_tokens"`
	}
}

// embed sends an embeddings request and returns the vectors.
func embed(t *testing.T, body string) ([][]float32, embeddings) {
	t.Helper()
	resp, got := call(t, "POST", serve(t)+"/embeddings", body)
	var list embeddings
	if err := json.Unmarshal([]byte(got), &list); err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %d %s (%v)", resp.StatusCode, got, err)
	}
	var vectors [][]float32
	for i, item := range list.Data {
		if item.Index != i {
			t.Errorf("item %d has index %d", i, item.Index)
		}
		vectors = append(vectors, decodeVector(t, item.Embedding))
	}
	return vectors, list
}

func decodeVector(t *testing.T, raw json.RawMessage) (v []float32) {
	t.Helper()
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var packed []byte
	if err := json.Unmarshal(raw, &packed); err != nil {
		t.Fatalf("%v: %s", err, base64.StdEncoding.EncodeToString(raw))
	}
	v = make([]float32, len(packed)/4)
	if err := binary.Read(bytes.NewReader(packed), binary.LittleEndian, v); err != nil {
		t.Fatal(err)
	}
	return v
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestEmbeddingsTellLikeFromUnlike(t *testing.T) {
	v, list := embed(t, `{"model":"any/model","input":["refund window of the shop","the refunds' window","tall mountains"]}`)
	if len(v) != 3 || list.Model != "any/model" || list.Usage.Prompt != 10 {
		t.Fatalf("got %+v", list)
	}
	for i := range v {
		if math.Abs(dot(v[i], v[i])-1) > 1e-5 {
			t.Errorf("vector %d isn't of length 1", i)
		}
	}
	if like, unlike := dot(v[0], v[1]), dot(v[0], v[2]); like < 0.5 || unlike > 0.3 {
		t.Errorf("like %.2f, unlike %.2f", like, unlike)
	}
}

func TestEmbeddingsInEveryForm(t *testing.T) {
	want, _ := embed(t, `{"model":"m","input":"hello world","dimensions":64}`)
	if len(want) != 1 || len(want[0]) != 64 {
		t.Fatalf("got %v", want)
	}
	for name, body := range map[string]string{
		"a list of one": `{"model":"m","input":["hello world"],"dimensions":64}`,
		"base64":        `{"model":"m","input":"hello world","dimensions":64,"encoding_format":"base64"}`,
		"float":         `{"model":"m","input":"hello world","dimensions":64,"encoding_format":"float"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := embed(t, body); len(got) != 1 || !slices.Equal(got[0], want[0]) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestEmbeddingsOfTokens(t *testing.T) {
	one, list := embed(t, `{"model":"m","input":[1,2,3]}`)
	if len(one) != 1 || len(one[0]) != 256 || list.Usage.Prompt != 3 {
		t.Fatalf("got %+v", list)
	}
	many, _ := embed(t, `{"model":"m","input":[[1,2,3],[7]]}`)
	if len(many) != 2 || !slices.Equal(many[0], one[0]) || slices.Equal(many[1], one[0]) {
		t.Errorf("got %v", many)
	}
}
