package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// data is what is measured with.
type data struct {
	conversations []conversations
	talk          bool // measure the prompt cache
	libraries     []library
	corpora       []corpus
	documents     *documents
}

// What -only selects.
const (
	onlyMemory = "memory"
	onlyFiles  = "files"
	onlyDocs   = "docs"
)

// readData reads what a folder holds of what is wanted; empty: all. Of each
// collection it takes at most limit questions; 0: all.
func readData(dir, only string, limit int) (d data, err error) {
	if only == "" || only == onlyMemory {
		d.talk = true
		d.conversations, err = readAll(filepath.Join(dir, "memory"), "sessions.jsonl", readConversations)
		for i := range d.conversations {
			d.conversations[i].questions = spread(d.conversations[i].questions, limit)
		}
	}
	if err == nil && (only == "" || only == onlyFiles) {
		d.libraries, err = readAll(filepath.Join(dir, "retrieval"), "questions.jsonl", readLibrary)
		for i := range d.libraries {
			d.libraries[i].questions = spread(d.libraries[i].questions, limit)
		}
	}
	if err == nil && (only == "" || only == onlyFiles) {
		d.corpora, err = readAll(filepath.Join(dir, "retrieval"), "corpus.jsonl", readCorpus)
		for i := range d.corpora {
			d.corpora[i].queries = spread(d.corpora[i].queries, limit)
		}
	}
	if err == nil && (only == "" || only == onlyDocs) {
		var docs documents
		if docs, err = readDocuments(filepath.Join(dir, "docs")); err == nil {
			docs.files = spread(docs.files, limit)
			d.documents = &docs
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil && len(d.conversations)+len(d.libraries)+len(d.corpora) == 0 && d.documents == nil {
		err = fmt.Errorf("%s holds nothing to measure with: expected memory/, retrieval/ or docs/", dir)
	}
	return d, err
}

func readAll[T any](dir, holding string, read func(string) (T, error)) ([]T, error) {
	found, err := folders(dir, holding)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, f := range found {
		v, err := read(f)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// spread takes at most n of a list, evenly.
func spread[T any](list []T, n int) []T {
	if n <= 0 || n >= len(list) {
		return list
	}
	taken := make([]T, n)
	for i := range taken {
		taken[i] = list[i*len(list)/n]
	}
	return taken
}

func libraryTenant(i int) string { return fmt.Sprintf("library-%d", i) }
func corpusTenant(i int) string  { return fmt.Sprintf("corpus-%d", i) }

// tenants are all that the data needs: what one uploads isn't found by another.
func (d *data) tenants() []string {
	all := []string{memoryTenant, cacheTenant, robustTenant}
	for i := range d.libraries {
		all = append(all, libraryTenant(i))
	}
	for i := range d.corpora {
		all = append(all, corpusTenant(i))
	}
	if d.documents != nil {
		for i := range d.documents.files {
			all = append(all, docsTenant(i))
		}
	}
	return all
}

// bench measures one store.
type bench struct {
	*data
	*report
	server  *server
	noFiles bool
	began   time.Time
}

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s  %s\n", time.Since(b.began).Seconds(), b.server.name, fmt.Sprintf(format, args...))
}

// fail keeps an error; the measurements go on with what is next.
func (b *bench) fail(what string, err error) {
	text := fmt.Sprintf("%s, %s: %v", b.server.name, what, err)
	b.Failures = append(b.Failures, text)
	b.say("FAILED %s: %v", what, err)
}

// run measures everything.
func (b *bench) run(ctx context.Context) {
	defer b.server.stop()
	if err := b.server.run(ctx, settings{added: cacheBudget}); err != nil {
		b.fail("start", err)
		return
	}
	b.memory(ctx)
	if b.talk && ctx.Err() == nil {
		b.cache(ctx)
	}
	if b.noFiles || ctx.Err() != nil {
		return
	}
	b.libraryShares(ctx)
	b.searches(ctx)
	if b.documents != nil && ctx.Err() == nil {
		b.extraction(ctx)
	}
}

func (b *bench) memory(ctx context.Context) {
	byBudget := make(map[int][]*conversations)
	for i := range b.conversations {
		c := &b.conversations[i]
		if err := c.importAll(ctx, b.server); err != nil {
			b.fail("memory "+c.name, err)
			continue
		}
		b.say("memory %s: %d sessions imported", c.name, len(c.sessions))
		for _, budget := range c.budgets() {
			byBudget[budget] = append(byBudget[budget], c)
		}
	}
	for _, budget := range sortedKeys(byBudget) {
		if err := b.server.run(ctx, settings{added: budget}); err != nil {
			b.fail("memory", err)
			return
		}
		for _, c := range byBudget[budget] {
			for _, v := range variants {
				answers, err := c.ask(ctx, b.server, v, budget)
				if err != nil {
					b.fail("memory "+c.name, err)
					break
				}
				of := row{Section: sectionMemory, Collection: c.name, Store: b.server.name, System: v.system, Budget: budget}
				b.add(memoryRows(of, c.questions, answers)...)
			}
			b.say("memory %s: %d questions asked at %d tokens", c.name, len(c.questions), budget)
		}
	}
}

func (b *bench) cache(ctx context.Context) {
	for _, c := range []struct {
		system string
		settings
	}{
		{systemFull, settings{added: cacheBudget}},
		{systemFull + ", recall off", settings{added: cacheBudget, recallOff: true}},
	} {
		if c.recallOff && !b.server.understands(ctx, c.settings) {
			b.say("cache: recall can't be turned off, and is left out")
			continue
		}
		err := b.server.run(ctx, c.settings)
		if err == nil {
			var r row
			if r, err = cachedTalk(ctx, b.server, c.system, c.system); err == nil {
				b.add(r)
			}
		}
		if err != nil {
			b.fail("cache", err)
			return
		}
	}
	b.say("cache: %d exchanges", cacheExchanges)
}

func (b *bench) libraryShares(ctx context.Context) {
	var ready []int
	for i := range b.libraries {
		l := &b.libraries[i]
		if err := uploadFolder(ctx, b.server, libraryTenant(i), filepath.Join(l.dir, "files")); err != nil {
			b.fail("files "+l.name, err)
			continue
		}
		b.say("files %s: uploaded", l.name)
		ready = append(ready, i)
	}
	if len(ready) == 0 {
		return
	}
	for _, budget := range fileBudgets {
		// Chunks get half of what may be added, at most.
		if err := b.server.run(ctx, settings{added: 2 * budget, files: budget}); err != nil {
			b.fail("files", err)
			return
		}
		for _, i := range ready {
			l := &b.libraries[i]
			r, err := l.ask(ctx, b.server, libraryTenant(i), budget)
			if err != nil {
				b.fail("files "+l.name, err)
				continue
			}
			b.add(r)
			b.say("files %s: %d questions asked at %d tokens", l.name, r.N, budget)
		}
	}
}

func (b *bench) searches(ctx context.Context) {
	for i := range b.corpora {
		c := &b.corpora[i]
		docs, refused, err := c.upload(ctx, b.server, corpusTenant(i))
		if err == nil {
			b.say("search %s: %d documents uploaded, %d refused", c.name, len(docs), refused)
			var r row
			if r, err = c.search(ctx, b.server, corpusTenant(i), docs); err == nil {
				b.add(r)
				b.say("search %s: %d queries", c.name, r.N)
			}
		}
		if err != nil {
			b.fail("search "+c.name, err)
		}
	}
}

func (b *bench) extraction(ctx context.Context) {
	rows, failed, err := b.documents.extract(ctx, b.server)
	if err != nil {
		b.fail("docs", err)
		return
	}
	b.add(rows...)
	b.say("docs: %d files", len(b.documents.files))
	r, also, err := b.documents.endure(ctx, b.server)
	if err != nil {
		b.fail("docs, damaged files", err)
		return
	}
	if r.N > 0 {
		b.add(r)
		b.say("docs: %d damaged files", r.N)
	}
	for _, f := range append(failed, also...) {
		b.Notes = append(b.Notes, b.server.name+": "+f)
	}
}

// baselines measures what needs no server.
func (r *report) baselines(d *data) {
	for i := range d.conversations {
		c := &d.conversations[i]
		archives := c.archives()
		for _, budget := range c.budgets() {
			by := c.baselines(budget, archives)
			for _, system := range []string{systemRecent, systemBM25} {
				of := row{Section: sectionMemory, Collection: c.name, System: system, Budget: budget}
				r.add(memoryRows(of, c.questions, by[system])...)
			}
		}
	}
	if d.talk {
		r.add(slidingWindow())
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
