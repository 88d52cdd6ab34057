package redis

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/RediSearch/redisearch-go/v2/redisearch"
)

// A query is text of ours alone: what comes from outside, tenants, files, words
// and vectors, goes beside it, as parameters, and can't become part of it.

const (
	// maxWord is the longest word that is indexed, in bytes.
	maxWord = 256
	// maxWords is how many words a query has; more are asked for in several,
	// since the server answers nobody else during one.
	maxWords = 64
	// maxQueries bounds the work that one search can make.
	maxQueries = 64
)

// wanted are the fields that a search returns of each chunk.
var wanted = []string{"file", "n", "text", "section", "page", "tokens"}

// distance is what the nearness of a chunk is called in a reply.
const distance = "distance"

// words returns the words of terms as they are indexed: the stems of runs of
// letters, digits, marks and underscores, each once. The server splits at ASCII punctuation only
// and ends at a NUL; having nothing else to split keeps both sides the same.
func words(terms []string) []string {
	var list []string
	seen := make(map[string]bool, len(terms))
	for _, term := range terms {
		for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(term, " "), isBreak) {
			if len(word) > maxWord || strings.IndexFunc(word, isAlphanumeric) < 0 {
				continue
			}
			if word = stem(word); !seen[word] {
				seen[word] = true
				list = append(list, word)
			}
		}
	}
	return list
}

// indexed returns the words of terms as often as they come, not yet as stems.
func indexed(terms string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(terms, " "), isBreak) {
		if len(word) > maxWord || strings.IndexFunc(word, isAlphanumeric) < 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func isBreak(r rune) bool { return !isAlphanumeric(r) && !unicode.IsMark(r) && r != '_' }

// parameters are what stands for "$name" in a query.
type parameters map[string]any

// tenant selects the tenant's chunks.
func (p parameters) tenant(name string) string {
	p["t"] = escape(name)
	return "@tenant:{$t}"
}

// without leaves out the chunks of files; their names are escaped.
func (p parameters) without(files []string) string {
	if len(files) == 0 {
		return ""
	}
	var names []string
	for i, file := range files {
		name := "x" + strconv.Itoa(i)
		p[name] = file
		names = append(names, "$"+name)
	}
	return " -@file:{" + strings.Join(names, "|") + "}"
}

// textQuery finds the chunks that hold any of the words. Each is optional: the
// server ranks alternatives inside a filter badly. The chunks that hold none of
// them come too, with a score of 0. What is left out stands apart from the tenant:
// inside of a clause without weight, it takes the weight from all the others.
func textQuery(tenant string, words, excluded []string, limit int) *redisearch.Query {
	p := parameters{}
	var b strings.Builder
	b.WriteString("(" + p.tenant(tenant) + ")=>{$weight:0}" + p.without(excluded) + " (")
	for i, word := range words {
		name := "w" + strconv.Itoa(i)
		p[name] = word
		b.WriteString(" ~$" + name)
	}
	b.WriteString(" )")
	return query(b.String(), p, limit).
		SetFlags(redisearch.QueryVerbatim | redisearch.QueryWithScores).
		SetScorer("BM25STD").
		SetReturnFields(wanted...)
}

// vectorQuery finds the nearest chunks.
func vectorQuery(tenant string, field string, vector []float32, excluded []string, limit int) *redisearch.Query {
	p := parameters{"v": encodeVector(vector)}
	text := "(" + p.tenant(tenant) + p.without(excluded) + ")=>[KNN " + strconv.Itoa(limit) + " @" + field + " $v AS " + distance + "]"
	return query(text, p, limit).
		SetSortBy(distance, true).
		SetReturnFields(append([]string{distance}, wanted...)...)
}

func query(text string, p parameters, limit int) *redisearch.Query {
	q := redisearch.NewQuery(text).SetParams(p).Limit(0, limit)
	q.Dialect = 2
	return q
}
