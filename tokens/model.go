package tokens

import (
	"math"
	"strings"
)

// Model says how text is counted for a model.
type Model struct {
	Encoding *Encoding
	// Margin is the factor, at least 1, by which counts are raised for a model
	// with a tokenizer of its own. 1: the count is exact.
	Margin float64
}

// Count returns the number of tokens of text: exact where the margin is 1, a
// cautious estimate otherwise.
func (m Model) Count(text string) int { return m.Raise(m.Encoding.Count(text)) }

// Raise applies the margin to a count of m.Encoding, rounding up: for counts
// that come from a Cache or from a store, where they are kept without it.
func (m Model) Raise(count int) int {
	if m.Margin <= 1 {
		return count
	}
	// The small term keeps 10 × 1.1 = 11.000000000000002 from becoming 12.
	return int(math.Ceil(float64(count)*m.Margin - 1e-6))
}

// The margins. They relate a tokenizer's counts to o200k_base's, on the
// cautious side of what was measured: too high a count wastes some of the
// context window, too low a one fails the request.
const (
	// Claude before Opus 4.7 measures 1.15 to 1.18, and users of 1.15 still
	// ran over: github.com/sammcj/ingest/pull/65,
	// github.com/caozhiyuan/copilot-api/pull/134 and /141 (which asks for 1.25).
	marginClaude4 = 1.25
	// From Opus 4.7 on, Claude has a tokenizer that makes "approximately 30
	// percent more tokens" (platform.claude.com, Token counting): 1.25 × 1.3.
	// sammcj/ingest measured 1.53.
	marginClaude = 1.6
	// Gemini and Gemma have 256k tokens, but make each digit one, and don't
	// merge punctuation and white space as o200k does: public comparisons say 5
	// to 10 % above o200k on English, and below it on Asian languages.
	marginGemini = 1.15
	// Llama 3 and Qwen extend cl100k's vocabulary, which is within 4 % of o200k
	// on this package's English and code (TestMarginOfLlama). Qwen makes each
	// digit a token.
	marginLlama = 1.1
	// DeepSeek's 128k tokens are like Llama 3's; no figures that we trust.
	marginDeepSeek = 1.15
	// Mistral's Tekken (131k tokens) is near o200k. Its older models, and Llama
	// 2, have SentencePiece with 32k tokens, which Tekken beats by "~30 %" on
	// code and several languages (docs.mistral.ai/guides/tokenization). Names
	// don't tell which.
	marginMistral = 1.25
	// Others: most new models have 100k to 260k tokens, and stay within 10 %.
	marginUnknown = 1.1
)

// families maps prefixes of model names, without provider, to how they are
// counted; of several that match, the first. Exact families end at a word's
// end: gpt-4 covers gpt-4 and gpt-4-turbo, not gpt-4x.
var families = []struct {
	prefix   string
	encoding func() *Encoding
	margin   float64 // 1: exact
}{
	{"gpt-4o", O200K, 1},
	{"gpt-4.1", O200K, 1},
	{"gpt-4.5", O200K, 1},
	{"gpt-5", O200K, 1},
	{"chatgpt", O200K, 1}, // chatgpt-4o-latest
	{"gpt-oss", O200K, 1}, // o200k_harmony: the same tokens, more special ones
	{"o1", O200K, 1},
	{"o3", O200K, 1},
	{"o4", O200K, 1},
	{"codex-mini", O200K, 1}, // o4-mini
	{"gpt-4", CL100K, 1},
	{"gpt-3.5", CL100K, 1},
	{"gpt-35", CL100K, 1}, // Azure's spelling
	{"text-embedding-3", CL100K, 1},
	{"text-embedding-ada-002", CL100K, 1},
	{"gemini", O200K, marginGemini},
	{"gemma", O200K, marginGemini},
	{"llama-2", O200K, marginMistral},
	{"llama", O200K, marginLlama},
	{"meta-llama", O200K, marginLlama},
	{"qwen", O200K, marginLlama},
	{"qwq", O200K, marginLlama},
	{"deepseek", O200K, marginDeepSeek},
	{"mistral", O200K, marginMistral},
	{"mixtral", O200K, marginMistral},
	{"ministral", O200K, marginMistral},
	{"magistral", O200K, marginMistral},
	{"codestral", O200K, marginMistral},
	{"devstral", O200K, marginMistral},
	{"pixtral", O200K, marginMistral},
}

// ForModel says how to count for a model, named bare or with providers before
// it: "gpt-4.1", "openai/gpt-4o", "openrouter/anthropic/claude-opus-4.5". A
// fine-tuned model (ft:gpt-4o-mini:…) counts as its base. Case doesn't matter.
//
// The current and recent families of OpenAI are exact. All others are counted
// with o200k_base and a margin; for one that isn't known it is 1.1. The demo
// provider's models are exact, since its router counts with this package.
func ForModel(name string) Model {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "demo/") {
		return Model{O200K(), 1}
	}
	if strings.Contains(name, "claude") { // also "us.anthropic.claude-…", as Bedrock says
		return Model{O200K(), claudeMargin(name)}
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	for _, f := range families {
		rest, ok := strings.CutPrefix(name, f.prefix)
		if ok && (f.margin > 1 || rest == "" || strings.IndexByte("-:@._", rest[0]) >= 0) {
			return Model{f.encoding(), f.margin}
		}
	}
	return Model{O200K(), marginUnknown}
}

// claudeMargin tells the tokenizers by the version in the name: claude-2.1,
// claude-3-5-sonnet, claude-opus-4-1-20250805 and claude-sonnet-4.6 have the
// older one; claude-opus-4-7, claude-sonnet-5, and what has no version, the
// newer.
func claudeMargin(name string) float64 {
	var version [2]int
	part := 0
	rest := name[strings.Index(name, "claude"):]
	for rest != "" && part < len(version) {
		digits := 0
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		switch digits {
		case 0:
			if part > 0 && rest[0] != '-' && rest[0] != '.' {
				part = len(version) // behind 3 in claude-3-opus: no minor version
			}
			rest = rest[1:]
			continue
		case 1, 2:
			for _, d := range []byte(rest[:digits]) {
				version[part] = 10*version[part] + int(d-'0')
			}
		default: // a date: no minor version
			part = len(version)
		}
		part++
		rest = rest[digits:]
	}
	major, minor := version[0], version[1]
	if major != 0 && major < 4 || major == 4 && minor < 7 || strings.Contains(name, "claude-instant") {
		return marginClaude4
	}
	return marginClaude
}
