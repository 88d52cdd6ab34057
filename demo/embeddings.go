package demo

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"
)

const (
	defaultDimensions = 256
	maxDimensions     = 4096
	maxInputs         = 2048
	maxInputTokens    = 8192
	// trigramWeight is how much a trigram of a word counts against the word.
	trigramWeight = 0.3
)

// embedding is one item of an embeddings list; Embedding is a []float32, or a
// string of base64.
type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

func (rt *Router) serveEmbeddings(w http.ResponseWriter, r *http.Request) *apiError {
	raw, err := readJSON(w, r)
	if err != nil {
		return err
	}
	body := gjson.ParseBytes(raw)
	model := body.Get("model")
	if model.Type != gjson.String || model.String() == "" {
		return errParam("model", "You must provide a model parameter.")
	}
	size := defaultDimensions
	if v := body.Get("dimensions"); v.Type != gjson.Null {
		size = int(v.Int())
		if v.Type != gjson.Number || float64(size) != v.Num || size < 1 || size > maxDimensions {
			return errParam("dimensions", "Invalid 'dimensions': expected an integer from 1 to %d.", maxDimensions)
		}
	}
	format := body.Get("encoding_format").String()
	if format != "" && format != "float" && format != "base64" {
		return errParam("encoding_format", "Invalid 'encoding_format': expected 'float' or 'base64'.")
	}
	inputs, err := embeddingInputs(body.Get("input"))
	if err != nil {
		return err
	}
	list := struct {
		Object string         `json:"object"`
		Data   []embedding    `json:"data"`
		Model  string         `json:"model"`
		Usage  embeddingUsage `json:"usage"`
	}{Object: "list", Model: model.String()}
	for i, input := range inputs {
		tokens := rt.inputTokens(input)
		if tokens > maxInputTokens {
			return errParam("input", "Invalid 'input': item %d has %d tokens, and %d is the most.", i, tokens, maxInputTokens)
		}
		list.Usage.Prompt += tokens
		item := embedding{Object: "embedding", Index: i, Embedding: hashed(features(input), size)}
		if format == "base64" {
			packed, _ := binary.Append(nil, binary.LittleEndian, item.Embedding) // a []float32 always packs
			item.Embedding = base64.StdEncoding.EncodeToString(packed)
		}
		list.Data = append(list.Data, item)
	}
	list.Usage.Total = list.Usage.Prompt
	writeJSON(w, http.StatusOK, list)
	return nil
}

type embeddingUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// embeddingInputs splits the input field into its items: each a string, or an
// array of tokens.
func embeddingInputs(input gjson.Result) ([]gjson.Result, *apiError) {
	items := []gjson.Result{input}
	if list := input.Array(); input.IsArray() && len(list) > 0 && list[0].Type != gjson.Number {
		items = list
	}
	if len(items) > maxInputs {
		return nil, errParam("input", "Invalid 'input': %d items, and %d is the most.", len(items), maxInputs)
	}
	for i, item := range items {
		if item.Type == gjson.String && item.String() != "" {
			continue
		}
		tokens := item.Array()
		valid := item.IsArray() && len(tokens) > 0
		for _, t := range tokens {
			valid = valid && t.Type == gjson.Number
		}
		if !valid {
			return nil, errParam("input", "Invalid 'input': item %d is neither a string nor an array of tokens, or it is empty.", i)
		}
	}
	return items, nil
}

func (rt *Router) inputTokens(input gjson.Result) int {
	if input.IsArray() {
		return len(input.Array())
	}
	return rt.count(input.String())
}

// features returns what an input is made of, weighted: its tokens as they are
// given, or the stems of its words and their trigrams.
func features(input gjson.Result) map[string]float64 {
	found := make(map[string]float64)
	if input.IsArray() {
		for _, token := range input.Array() {
			found["token "+token.Raw]++
		}
		return found
	}
	for _, w := range words(input.String()) {
		if stopWords[w] {
			continue
		}
		found["word "+stem(w)]++
		framed := []rune("^" + w + "$")
		for i := 0; i+3 <= len(framed); i++ {
			found["part "+string(framed[i:i+3])] += trigramWeight
		}
	}
	return found
}

// hashed adds up the features, each at the place and with the sign that its
// hash says, to a vector of length 1.
func hashed(features map[string]float64, size int) []float32 {
	sum := make([]float64, size)
	for _, f := range slices.Sorted(maps.Keys(features)) { // sums depend on the order
		weight := features[f]
		h := fnv.New64a()
		_, _ = h.Write([]byte(f))
		at := h.Sum64()
		if at>>63 == 1 {
			weight = -weight
		}
		sum[at%uint64(size)] += weight
	}
	var square float64
	for _, v := range sum {
		square += v * v
	}
	vector := make([]float32, size)
	for i, v := range sum {
		if square > 0 {
			vector[i] = float32(v / math.Sqrt(square))
		}
	}
	return vector
}
