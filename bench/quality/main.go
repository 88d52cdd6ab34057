// Command quality measures what Backstory puts into prompts, on conversations
// and documents with known answers, the way a client gets it: it starts
// ./backstory and speaks to its HTTP API.
//
//	quality [-data dir] [-only memory|files|docs] [-limit n] [-json file]
//
// The folder holds any of
//
//	memory/<name>/      sessions.jsonl   {id, messages: [{id, role, name, text, date}]}
//	                    questions.jsonl  {session, question, evidence: [message ids], category}
//	retrieval/<name>/   files/, questions.jsonl  {query, text, must_contain: [excerpts]}
//	retrieval/<name>/   corpus.jsonl {doc, text}, queries.jsonl {query, text}, qrels.tsv
//	docs/               files/, expected.jsonl  {file, must_contain, must_not_contain}
//	                    robust/, robust.jsonl   {file}
//
// Where BACKSTORY_TEST_REDIS is the URL of a Redis, it measures on that as well,
// under keys of its own. Tables go to the standard output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	data, bin, only, json string
	limit                 int
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", "bench/quality/testdata", "the `folder` to measure with")
	flag.StringVar(&o.bin, "bin", "backstory", "the `program` to measure")
	flag.StringVar(&o.only, "only", "", "measure `memory`, files or docs alone")
	flag.IntVar(&o.limit, "limit", 0, "take at most `n` questions of each collection")
	flag.StringVar(&o.json, "json", "", "write the figures into a `file` as well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

// measure measures each store, and prints the report.
func measure(ctx context.Context, o options) error {
	switch o.only {
	case "", onlyMemory, onlyFiles, onlyDocs:
	default:
		return fmt.Errorf("-only %s: expected memory, files or docs", o.only)
	}
	if _, err := os.Stat(o.data); err != nil {
		return err
	}
	d, err := readData(o.data, o.only, o.limit)
	if err != nil {
		return err
	}
	stores, err := backends(ctx, os.Getenv(redisURL))
	if err != nil {
		return err
	}
	r := &report{Data: o.data, Started: time.Now()}
	for _, s := range stores {
		if err := measureOn(ctx, s, o.bin, &d, r); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		r.baselines(&d)
	}
	r.Seconds = time.Since(r.Started).Seconds()
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if o.json != "" {
		if err := r.writeJSON(o.json); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case len(r.Failures) > 0:
		return fmt.Errorf("%d measurements failed", len(r.Failures))
	}
	return nil
}

// measureOn measures one store, and leaves nothing behind.
func measureOn(ctx context.Context, on backend, bin string, d *data, r *report) (err error) {
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "backstory-quality-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if on.remove != nil {
		defer func() { err = errors.Join(err, on.remove(context.WithoutCancel(ctx))) }()
	}
	s, err := newServer(bin, dir, on, d.tenants())
	if err != nil {
		return err
	}
	b := &bench{data: d, report: r, server: s, noFiles: on.noFiles, began: time.Now()}
	b.run(ctx)
	return nil
}
