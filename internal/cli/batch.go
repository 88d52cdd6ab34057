package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dustin/go-humanize/english"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/openai"
)

// batch is work on many files, some at once.
type batch struct {
	doing string // what is done, for the bar
	names []string
	done  atomic.Int64
	errs  []error // by file
}

// Now implements progress.
func (b *batch) Now() (phase string, done, total int64) {
	return b.doing, b.done.Load(), int64(len(b.names))
}

// run does it for each file, and shows how far it is. An error that all others
// would meet, too, ends it, and is returned.
func (b *batch) run(ctx context.Context, jobs int, do func(ctx context.Context, i int) error) error {
	b.errs = make([]error, len(b.names))
	defer showProgress(os.Stderr, b)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, jobs) {
		workers.Go(func() {
			for i := range next {
				err := do(ctx, i)
				if hopeless(err) {
					cancel(err)
				}
				b.errs[i] = err
				b.done.Add(1)
			}
		})
	}
	for i := range b.names {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// failures writes a line for each file that failed, and counts them.
func (b *batch) failures(t *filesTask) (n int) {
	for i, err := range b.errs {
		if err != nil {
			n++
			fmt.Fprintf(t.err, "%s: %s\n", oneLine(b.names[i]), oneLine(err.Error()))
		}
	}
	return n
}

func addFilesCommand(t *filesTask, fl flags) error {
	paths, err := filesUnder(fl.Args())
	if err != nil {
		return err
	}
	before, err := t.list(t.ctx)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(before))
	for _, f := range before {
		there[f.ID] = true
	}
	b := &batch{doing: "adding", names: paths}
	files := make([]openai.File, len(paths))
	err = b.run(t.ctx, fl.Int("jobs"), func(ctx context.Context, i int) (err error) {
		files[i], err = t.add(ctx, paths[i])
		return err
	})
	if err != nil {
		return err
	}
	failed, known := b.failures(t), 0
	var added []openai.File
	for i, f := range files {
		switch {
		case b.errs[i] != nil:
		case there[f.ID]:
			known++
		default:
			there[f.ID] = true // the same file may be named twice
			added = append(added, f)
		}
	}
	if t.json {
		if err := t.writeJSON(openai.NewList(added, len(added), func(f openai.File) string { return f.ID })); err != nil {
			return err
		}
	}
	summary := english.Plural(len(added), "file", "") + " added"
	if known > 0 {
		summary += fmt.Sprintf(", %d already there", known)
	}
	if failed > 0 {
		return fmt.Errorf("%s, %d failed", summary, failed)
	}
	fmt.Fprintln(t.err, summary)
	return nil
}

// filesUnder lists the files named, and in folders all that aren't hidden.
func filesUnder(args []string) (paths []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path != arg && strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), "."):
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("no files to add")
	}
	return paths, nil
}

func reindexFilesCommand(t *filesTask, fl flags) error {
	list, err := t.list(t.ctx)
	if err != nil {
		return err
	}
	b := &batch{doing: "indexing"}
	var ids []string
	for _, f := range list {
		if f.Status == "processed" {
			ids, b.names = append(ids, f.ID), append(b.names, f.Filename)
		}
	}
	var files, chunks atomic.Int64
	err = b.run(t.ctx, fl.Int("jobs"), func(ctx context.Context, i int) error {
		var done gateway.Reindexed
		err := t.post(ctx, "/files/"+url.PathEscape(ids[i])+"/reindex", struct{}{}, &done)
		if done.Reindexed {
			files.Add(1)
			chunks.Add(int64(done.Chunks))
		}
		return err
	})
	if err != nil {
		return err
	}
	failed := b.failures(t)
	summary := fmt.Sprintf("%s re-embedded, %s", english.Plural(int(files.Load()), "file", ""), english.Plural(int(chunks.Load()), "chunk", ""))
	if current := len(ids) - int(files.Load()) - failed; current > 0 {
		summary += fmt.Sprintf("; %d already up to date", current)
	}
	if failed > 0 {
		return fmt.Errorf("%s, %d failed", summary, failed)
	}
	fmt.Fprintln(t.err, summary)
	return nil
}
