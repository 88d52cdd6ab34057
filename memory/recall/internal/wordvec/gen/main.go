// Command gen makes words.bin of package wordvec from GloVe's glove.6B.100d.txt
// (https://nlp.stanford.edu/projects/glove/, under the Public Domain Dedication
// and License):
//
//	go run ./memory/recall/internal/wordvec/gen glove.6B.100d.txt > memory/recall/internal/wordvec/words.bin
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

const (
	// wanted is how many of the words are read, the most frequent first. With
	// 20,000 LoCoMo's figures are .3 points lower, with 40,000 they are the same.
	wanted = 30_000
	from   = 100 // dimensions of GloVe
	rounds = 300 // of the iteration, which has come to rest by then
)

type word struct {
	stem   string
	vector []float64
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gen glove.6B.100d.txt > words.bin")
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	words, err := read(f)
	if err != nil {
		log.Fatal(err)
	}
	center(words)
	project(words, directions(words))
	if _, err := os.Stdout.Write(encode(words)); err != nil {
		log.Fatal(err)
	}
}

// read returns the stems of the first words, each with the unit vector of its
// most frequent form. Stop words say nothing.
func read(r io.Reader) ([]word, error) {
	lines := bufio.NewScanner(r)
	var words []word
	seen := make(map[string]bool)
	for n := 0; n < wanted && lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != from+1 {
			return nil, fmt.Errorf("expected a word and %d numbers, not %d fields", from, len(fields))
		}
		w := fields[0]
		if len(w) < 2 || strings.ContainsFunc(w, func(c rune) bool { return c < 'a' || c > 'z' }) {
			continue
		}
		n++
		stem := terms.Stem(w)
		if terms.Stop(w) || seen[stem] {
			continue
		}
		seen[stem] = true
		v := make([]float64, from)
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(fields[i+1], 64); err != nil {
				return nil, err
			}
		}
		words = append(words, word{stem, unit(v)})
	}
	return words, lines.Err()
}

// center takes out what all vectors have in common.
func center(words []word) {
	mean := make([]float64, from)
	for _, w := range words {
		for i, x := range w.vector {
			mean[i] += x / float64(len(words))
		}
	}
	for _, w := range words {
		for i := range w.vector {
			w.vector[i] -= mean[i]
		}
	}
}

// directions returns the orthogonal unit vectors that hold most of what tells
// words apart: the space of the first principal components, by orthogonal
// iteration.
func directions(words []word) [][]float64 {
	var covariance [from][from]float64
	for _, w := range words {
		for i, x := range w.vector {
			for j, y := range w.vector {
				covariance[i][j] += x * y
			}
		}
	}
	random := rand.New(rand.NewPCG(6, 100))
	basis := make([][]float64, wordvec.Dims)
	for k := range basis {
		basis[k] = make([]float64, from)
		for i := range basis[k] {
			basis[k][i] = random.NormFloat64()
		}
	}
	for range rounds {
		for k, b := range basis {
			next := make([]float64, from)
			for i := range next {
				next[i] = dot(covariance[i][:], b)
			}
			for _, before := range basis[:k] {
				part := dot(next, before)
				for i := range next {
					next[i] -= part * before[i]
				}
			}
			basis[k] = unit(next)
		}
	}
	return basis
}

// project leaves of each vector its part along the directions, at length 1.
func project(words []word, directions [][]float64) {
	for i := range words {
		v := make([]float64, len(directions))
		for k := range v {
			v[k] = dot(words[i].vector, directions[k])
		}
		words[i].vector = unit(v)
	}
}

// encode writes the words as package wordvec reads them.
func encode(words []word) []byte {
	slices.SortFunc(words, func(a, b word) int { return cmp.Compare(a.stem, b.stem) })
	stems := make([]string, len(words))
	var vectors bytes.Buffer
	for i, w := range words {
		stems[i] = w.stem
		for _, x := range w.vector {
			vectors.WriteByte(byte(int8(math.Round(max(-127, min(127, x*wordvec.Unit))))))
		}
	}
	text := strings.Join(stems, "\n")
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return append(append(out, text...), vectors.Bytes()...)
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func unit(v []float64) []float64 {
	length := math.Sqrt(dot(v, v))
	for i := range v {
		v[i] /= length
	}
	return v
}
