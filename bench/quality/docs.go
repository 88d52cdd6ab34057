package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// documents are the folder docs/: files with what their text must hold, and
// damaged ones.
type documents struct {
	dir    string
	files  []expectation
	robust []expectation // only their names
}

// docsTenant is a tenant for each file: a search of it finds that file only.
func docsTenant(i int) string { return fmt.Sprintf("docs-%d", i) }

const robustTenant = "robust"

func readDocuments(dir string) (d documents, err error) {
	d.dir = dir
	if d.files, err = readLines[expectation](filepath.Join(dir, "expected.jsonl")); err != nil {
		return d, err
	}
	d.robust, err = readLines[expectation](filepath.Join(dir, "robust.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return d, err
}

// extract uploads every file and looks for the snippets in what can be found of
// it. It also returns which failed, and how.
func (d *documents) extract(ctx context.Context, s *server) (rows []row, failed []string, err error) {
	type outcome struct {
		found     int // snippets
		forbidden bool
		notes     []string
	}
	outcomes := make([]outcome, len(d.files))
	err = each(ctx, len(d.files), func(ctx context.Context, i int) error {
		e, o := &d.files[i], &outcomes[i]
		content, err := os.ReadFile(filepath.Join(d.dir, "files", e.File))
		if err != nil {
			return err
		}
		text, err := s.textOf(ctx, docsTenant(i), content, e)
		var refusal *statusError
		if errors.As(err, &refusal) {
			o.notes = []string{fmt.Sprintf("%s: %s", e.File, err)}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.File, err)
		}
		x := newExtracted(text)
		for _, snippet := range e.MustContain {
			if x.holds(snippet) {
				o.found++
			} else {
				o.notes = append(o.notes, fmt.Sprintf("%s: misses %q", e.File, snippet))
			}
		}
		for _, snippet := range e.MustNotContain {
			if w := wordsOf(snippet); w.len() > 0 && x.holds(snippet) {
				o.forbidden = true
				o.notes = append(o.notes, fmt.Sprintf("%s: holds %q", e.File, snippet))
			}
		}
		return nil
	})
	type sums struct{ snippets, found, perfect mean }
	by := map[string]*sums{"": {}}
	for i, o := range outcomes {
		e := &d.files[i]
		kind := strings.TrimPrefix(strings.ToLower(filepath.Ext(e.File)), ".")
		if by[kind] == nil {
			by[kind] = new(sums)
		}
		for _, k := range []string{"", kind} {
			by[k].snippets.add(float64(len(e.MustContain)))
			by[k].found.add(float64(o.found))
			by[k].perfect.share(o.found == len(e.MustContain) && !o.forbidden)
		}
		failed = append(failed, o.notes...)
	}
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		k := by[kind]
		rows = append(rows, row{
			Section: sectionDocs, Collection: filepath.Base(d.dir), Store: s.name, Category: kind, N: k.perfect.n,
			Figures: map[string]float64{"snippets": k.found.sum / max(1, k.snippets.sum), "perfect": k.perfect.value()},
		})
	}
	return rows, failed, err
}

// textOf uploads a file and gets its text back, as far as searches for the
// snippets find it. Nothing in the API shows all of it; but a chunk that
// holds a snippet is found by the snippet's own words.
func (s *server) textOf(ctx context.Context, tenant string, content []byte, e *expectation) (string, error) {
	if _, err := s.upload(ctx, tenant, e.File, content); err != nil {
		return "", err
	}
	found := make(map[int]hit)
	for _, snippet := range slices.Concat(e.MustContain, e.MustNotContain) {
		if strings.TrimSpace(snippet) == "" {
			continue
		}
		hits, err := s.search(ctx, tenant, snippet)
		if err != nil {
			return "", err
		}
		for _, h := range hits {
			found[h.Chunk] = h
		}
	}
	return textOfHits(slices.Collect(maps.Values(found))), nil
}

// textOfHits puts the chunks of a file together: what one repeats of the one
// before it is left out. Their headings are text of the file as well.
func textOfHits(hits []hit) string {
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.Chunk, b.Chunk) })
	var body, headings strings.Builder
	before, last := -2, ""
	for _, h := range hits {
		var text string
		for _, c := range h.Content {
			text += c.Text + "\n"
		}
		text = strings.TrimSpace(text)
		repeated := 0
		if h.Chunk == before+1 {
			repeated = overlap(last, text)
		}
		body.WriteString(text[repeated:] + "\n")
		headings.WriteString(h.Section + "\n")
		before, last = h.Chunk, text
	}
	return body.String() + headings.String()
}

// overlap is how many bytes at the start of b are the end of a. A few are the
// same by chance.
func overlap(a, b string) int {
	const least = 12
	for n := min(len(a), len(b)); n >= least; n-- {
		if a[len(a)-n:] == b[:n] {
			return n
		}
	}
	return 0
}

// endure uploads the damaged files: each has to be answered within ten seconds,
// with a reason if it is refused, and the server has to stay up. It also
// returns which failed, and how.
func (d *documents) endure(ctx context.Context, s *server) (r row, failed []string, err error) {
	const patience = 10 * time.Second
	var passed, seconds mean
	for _, e := range d.robust {
		content, err := os.ReadFile(filepath.Join(d.dir, "robust", e.File))
		if err != nil {
			return r, failed, err
		}
		began := time.Now()
		_, err = s.upload(ctx, robustTenant, e.File, content)
		took := time.Since(began)
		if ctx.Err() != nil {
			return r, failed, ctx.Err()
		}
		why := ""
		var refusal *statusError
		switch {
		case s.ready(ctx) != nil:
			why = "the server is down"
		case took > patience:
			why = "answered after " + took.Round(time.Second).String()
		case err == nil:
		case !errors.As(err, &refusal):
			why = err.Error()
		case refusal.status >= http.StatusInternalServerError || refusal.message == "":
			why = "refused without a reason of its own: " + err.Error()
		}
		passed.share(why == "")
		seconds.add(took.Seconds())
		if why != "" {
			failed = append(failed, e.File+": "+why)
		}
	}
	return row{
		Section: sectionRobust, Collection: filepath.Base(d.dir), Store: s.name, N: passed.n,
		Figures: map[string]float64{"passed": passed.value(), "slowest_seconds": seconds.max},
	}, failed, nil
}
