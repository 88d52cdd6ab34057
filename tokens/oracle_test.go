package tokens

import (
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The oracle is pkoukk/tiktoken-go with the same embedded vocabularies. It is
// exact and slow; mind its quadratic behaviour on long pieces.
//
// Its regexp engine doesn't fold ſ to s, as OpenAI's does. So there is a second
// oracle for texts in which that matters, whose pattern spells the folding out.
var (
	oracleO200K   = sync.OnceValue(func() *tiktoken.Tiktoken { return oracle("o200k_base") })
	oracleCL100K  = sync.OnceValue(func() *tiktoken.Tiktoken { return oracle("cl100k_base") })
	foldingO200K  = sync.OnceValue(func() *tiktoken.Tiktoken { return folding("o200k_base", patternO200K) })
	foldingCL100K = sync.OnceValue(func() *tiktoken.Tiktoken { return folding("cl100k_base", patternCL100K) })
)

// The oracle's patterns, in which C stands for the contraction.
const (
	contractions  = `(?i:'s|'ſ|'t|'re|'ve|'m|'ll|'d)`
	patternO200K  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+C?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternCL100K = `C|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// offline loads each vocabulary once for both oracles.
type offline struct {
	mu     sync.Mutex
	loaded map[string]map[string]int
}

func (o *offline) LoadTiktokenBpe(url string) (map[string]int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	file := path.Base(url)
	if o.loaded[file] == nil {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(file)
		if err != nil {
			return nil, err
		}
		o.loaded[file] = ranks
	}
	return o.loaded[file], nil
}

var ranks = &offline{loaded: map[string]map[string]int{}}

func init() { tiktoken.SetBpeLoader(ranks) }

func oracle(name string) *tiktoken.Tiktoken {
	t, err := tiktoken.GetEncoding(name)
	if err != nil {
		panic(err)
	}
	return t
}

func folding(name, pattern string) *tiktoken.Tiktoken {
	ranks, err := ranks.LoadTiktokenBpe(name + ".tiktoken")
	if err != nil {
		panic(err)
	}
	special := map[string]int{tiktoken.ENDOFTEXT: 1 << 20}
	bpe, err := tiktoken.NewCoreBPE(ranks, special, strings.ReplaceAll(pattern, "C", contractions))
	if err != nil {
		panic(err)
	}
	return tiktoken.NewTiktoken(bpe, &tiktoken.Encoding{SpecialTokens: special}, map[string]any{})
}

// pair is an encoding with its oracles.
type pair struct {
	*Encoding
	oracle, folding func() *tiktoken.Tiktoken
}

func pairs() []pair {
	return []pair{{O200K(), oracleO200K, foldingO200K}, {CL100K(), oracleCL100K, foldingCL100K}}
}

// check compares the count of text with the oracle's.
func (p pair) check(t testing.TB, text string) {
	t.Helper()
	oracle := p.oracle
	if strings.Contains(text, "'ſ") {
		oracle = p.folding
	}
	if got, want := p.Count(text), len(oracle().EncodeOrdinary(text)); got != want {
		t.Fatalf("%s: %d tokens, the oracle says %d\ntext: %q\npieces: %q", p.Name(), got, want, text, p.pieces(text))
	}
}

func (e *Encoding) pieces(text string) []string {
	var all []string
	for s := newScanner(e.split, text); s.next(); {
		all = append(all, s.text[s.start:s.end])
	}
	return all
}
