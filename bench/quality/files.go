package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// library is a folder of retrieval/ with files and questions about them.
type library struct {
	name      string
	dir       string
	questions []fileQuestion
}

// fileBudgets are the budgets that chunks get in a prompt, in tokens.
var fileBudgets = []int{1000, 2000, 4000}

func readLibrary(dir string) (l library, err error) {
	l.name, l.dir = filepath.Base(dir), dir
	l.questions, err = readLines[fileQuestion](filepath.Join(dir, "questions.jsonl"))
	for _, q := range l.questions {
		if len(q.MustContain) == 0 {
			return l, fmt.Errorf("%s: question %s has no excerpt that answers it", dir, q.Query)
		}
	}
	return l, err
}

// uploadFolder uploads the files of a folder, one after the other: chunks
// that fit equally well stand in the order in which they came.
func uploadFolder(ctx context.Context, s *server, tenant, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			_, err = s.upload(ctx, tenant, e.Name(), content)
		}
		if err != nil {
			return fmt.Errorf("upload of %s: %w", e.Name(), err)
		}
	}
	return nil
}

// ask previews every question at a budget that the server has been given, and
// looks for the excerpts that answer it.
func (l *library) ask(ctx context.Context, s *server, tenant string, budget int) (row, error) {
	type answer struct {
		found  int // excerpts
		tokens int
	}
	answers := make([]answer, len(l.questions))
	err := each(ctx, len(l.questions), func(ctx context.Context, i int) error {
		q := &l.questions[i]
		p, err := s.preview(ctx, tenant, "", said{Role: "user", Content: q.Text})
		if err != nil {
			return fmt.Errorf("question %s: %w", q.Query, err)
		}
		given, err := contextOf(p.Messages, q.Text)
		if err != nil {
			return fmt.Errorf("question %s: %w", q.Query, err)
		}
		prompted := newPrompted(given.text)
		for _, excerpt := range q.MustContain {
			if w := wordsOf(excerpt); prompted.includesExcerpt(&w) {
				answers[i].found++
			}
		}
		answers[i].tokens = max(given.tokens, p.added())
		return nil
	})
	var full, share, size, over mean
	for i, a := range answers {
		full.share(a.found == len(l.questions[i].MustContain))
		share.add(float64(a.found) / float64(len(l.questions[i].MustContain)))
		size.add(float64(a.tokens))
		over.share(a.tokens > budget)
	}
	return row{
		Section: sectionFiles, Collection: l.name, Store: s.name, Budget: budget, N: full.n,
		Figures: map[string]float64{
			"full": full.value(), "share": share.value(),
			"tokens_mean": size.value(), "tokens_max": size.max, "over_budget": over.sum,
		},
	}, err
}

// upload uploads every document of a corpus as a file of its own, and returns
// the documents by file id. One that the server refuses is left out.
func (c *corpus) upload(ctx context.Context, s *server, tenant string) (docs map[string]string, refused int, err error) {
	ids := make([]string, len(c.docs))
	err = each(ctx, len(c.docs), func(ctx context.Context, i int) error {
		f, err := s.upload(ctx, tenant, fileName(i, c.docs[i].ID), []byte(c.docs[i].Text))
		var refusal *statusError
		if errors.As(err, &refusal) && refusal.status < 500 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("upload of document %s: %w", c.docs[i].ID, err)
		}
		ids[i] = f.ID
		return nil
	})
	docs = make(map[string]string)
	for i, id := range ids {
		if id == "" {
			refused++
			continue
		}
		docs[id] = c.docs[i].ID
	}
	return docs, refused, err
}

var extension = regexp.MustCompile(`^\.[a-z]{1,4}$`)

// fileName names the file of a document. Names are searched as well, so it says
// nothing but the language of a source file.
func fileName(n int, id string) string {
	id, _, _ = strings.Cut(id, "#")
	ext := path.Ext(id)
	if !extension.MatchString(ext) || strings.Contains(id, "://") {
		ext = ".txt"
	}
	return fmt.Sprintf("d%06d%s", n, ext)
}

// search searches for every query. A document's place is that of its best
// chunk.
func (c *corpus) search(ctx context.Context, s *server, tenant string, docs map[string]string) (row, error) {
	ranked := make([][]string, len(c.queries))
	err := each(ctx, len(c.queries), func(ctx context.Context, i int) error {
		hits, err := s.search(ctx, tenant, c.queries[i].Text)
		if err != nil {
			return fmt.Errorf("query %s: %w", c.queries[i].ID, err)
		}
		seen := make(map[string]bool)
		for _, h := range hits {
			if doc := docs[h.FileID]; !seen[doc] {
				seen[doc] = true
				ranked[i] = append(ranked[i], doc)
			}
		}
		return nil
	})
	sums := map[string]*mean{"ndcg@10": {}, "recall@1": {}, "recall@5": {}, "recall@10": {}, "recall@20": {}}
	for i, q := range c.queries {
		relevant := c.relevant[q.ID]
		sums["ndcg@10"].add(ndcg10(ranked[i], relevant))
		for _, k := range []int{1, 5, 10, 20} {
			sums[fmt.Sprintf("recall@%d", k)].add(recallAt(k, ranked[i], relevant))
		}
	}
	r := row{Section: sectionSearch, Collection: c.name, Store: s.name, N: len(c.queries), Figures: map[string]float64{}}
	for name, sum := range sums {
		r.Figures[name] = sum.value()
	}
	return r, err
}
