package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/redis"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/migrate"
)

func migrateCommands() Command {
	return Command{
		Name:  "migrate",
		Usage: "--from <store> --to <store> [--from-prefix <text>] [--to-prefix <text>] [--index hnsw|flat] [--no-files] [--merge]",
		Short: "Copies one Backstory store into another",
		Long: `
Copies everything in one store to another: service keys, usage, sessions, files
and vectors. Then reads both stores and compares them, by counts and SHA-256.

First stop the proxies that use either store, or point them to another one, and
let them finish saving: changes made meanwhile are not copied, or are reported as
differences. The source keeps all that it holds. Opening a store cleans up uploads
and deletions that were interrupted, and brings a SQLite file up to date, after
which an older version refuses it.

A store is one of
  sqlite:<path>
  redis://[user:password@]host[:port]           rediss:// for TLS
  redis+sentinel://host[:port],.../<primary>    rediss+sentinel://
  redis+cluster://host[:port],...               rediss+cluster://
  env:<name>    the variable holds one of these, so that a password is not on
                the command line

You can interrupt it and run it again: it continues where it stopped. Run again
after it has finished, it copies what is new. It removes nothing from the target,
restores no session that was deleted there, and revives no key that was revoked
there. A target that holds more than the source counts as different, unless
--merge is given.

The exit status is 0 if everything was copied and verified, 1 if the stores
differ, 2 if it failed, 130 if it was interrupted.`,
		Setup: func(c *cobra.Command) {
			c.Args = cobra.NoArgs
			fs := c.Flags()
			fs.String("from", "", "The store to copy")
			fs.String("to", "", "The store to copy to")
			fs.String("from-prefix", "", "The prefix of a Redis source's keys (default \"backstory:\")")
			fs.String("to-prefix", "", "The prefix of a Redis target's keys (default \"backstory:\")")
			fs.String("index", "hnsw", "How a Redis target indexes vectors: hnsw or flat, as in its configuration")
			fs.Bool("no-files", false, "Leave out files, for a Redis target without the search module")
			fs.Bool("merge", false, "Allow the target to hold more than the source")
			c.RunE = func(c *cobra.Command, _ []string) error { return migrateCommand(flags{c.Flags()}) }
		},
	}
}

// The exit statuses besides 0.
const (
	migrateDiffers     = 1
	migrateFailed      = 2
	migrateInterrupted = 130
)

// errDiffers refers to the report, which tells what is wrong.
var errDiffers = errors.New("the target doesn't match the source: see above")

func migrateCommand(fl flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // whoever is impatient interrupts it twice
	logging.Disable()            // errors are returned; go-redis would write them into the bar
	o := migrateOptions{
		from:    endpoint{name: "--from", url: fl.String("from"), prefix: fl.String("from-prefix")},
		to:      endpoint{name: "--to", url: fl.String("to"), prefix: fl.String("to-prefix")},
		index:   fl.String("index"),
		noFiles: fl.Bool("no-files"),
		merge:   fl.Bool("merge"),
	}
	switch err := o.run(ctx, os.Stdout, os.Stderr); {
	case err == nil:
		return nil
	case errors.Is(err, errDiffers):
		return &ExitError{migrateDiffers, err}
	case ctx.Err() != nil:
		return &ExitError{migrateInterrupted, errors.New("interrupted; run it again to continue")}
	default:
		return &ExitError{migrateFailed, err}
	}
}

// endpoint is one side of a migration.
type endpoint struct {
	name   string // of its flag
	url    string
	prefix string
}

// resolve looks the URL up where it is in a variable, and checks it. What it
// says of an error holds no password.
func (e *endpoint) resolve() error {
	if variable, ok := strings.CutPrefix(e.url, "env:"); ok {
		if e.url = os.Getenv(variable); e.url == "" {
			return fmt.Errorf("%s: the variable %s is not set", e.name, variable)
		}
	}
	if path, ok := strings.CutPrefix(e.url, "sqlite:"); ok {
		abs, err := filepath.Abs(path)
		switch {
		case path == "":
			return fmt.Errorf("%s: write sqlite:<path>", e.name)
		case err != nil:
			return fmt.Errorf("%s: %w", e.name, err)
		case e.prefix != "":
			return fmt.Errorf("%s-prefix applies to Redis only", e.name)
		}
		e.url = "sqlite:" + abs
		return nil
	}
	if e.url == "" {
		return fmt.Errorf("%s is missing: give sqlite:<path>, redis://<host> or env:<variable>", e.name)
	}
	if _, err := redis.ParseURL(e.url); err != nil {
		return fmt.Errorf("%s: %w; or write sqlite:<path>", e.name, err)
	}
	return nil
}

// migrateTimeout is how long Redis may be silent during a migration. Nobody waits for
// one answer of many.
const migrateTimeout = 10 * time.Second

// open opens the store. A file must not be in use, and a source must be there.
func (e *endpoint) open(ctx context.Context, o redis.Options, create bool) (store.Migrator, error) {
	path, file := strings.CutPrefix(e.url, "sqlite:")
	if !file {
		o.Prefix = e.prefix
		o.Timeout = migrateTimeout
		s, err := redis.Open(ctx, e.url, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		return s, nil
	}
	if info, err := os.Stat(path); !create && (err != nil || info.Size() == 0) {
		return nil, fmt.Errorf("%s: there is no store at %s", e.name, path)
	}
	if used, err := sqlite.InUse(path); err != nil || used {
		return nil, errors.Join(err, fmt.Errorf("%s: %s is in use; stop the proxy first", e.name, path))
	}
	// Each session is read from end to end: nothing is worth keeping in memory.
	s, err := sqlite.Open(ctx, path, sqlite.Options{CacheSize: -1})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return s, nil
}

type migrateOptions struct {
	from, to       endpoint
	index          string
	noFiles, merge bool
}

// run migrates, shows its progress on terminal, and writes the report to out.
func (o *migrateOptions) run(ctx context.Context, out io.Writer, terminal *os.File) (err error) {
	algorithm := redis.Algorithm(strings.ToUpper(o.index))
	if algorithm != redis.HNSW && algorithm != redis.Flat {
		return fmt.Errorf("--index must be hnsw or flat, not %q", o.index)
	}
	for _, e := range []*endpoint{&o.from, &o.to} {
		if err := e.resolve(); err != nil {
			return err
		}
	}
	if o.from.url == o.to.url && o.from.prefix == o.to.prefix {
		return errors.New("--from and --to name the same store")
	}
	// To be read, files need no search module.
	from, err := o.from.open(ctx, redis.Options{NoFiles: true, Timeout: redisPatience}, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := o.to.open(ctx, redis.Options{NoFiles: o.noFiles, Algorithm: algorithm, Timeout: redisPatience}, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	var progress migrate.Progress
	stopped := showProgress(terminal, &progress)
	report, err := migrate.Run(ctx, from, to, migrate.Options{NoFiles: o.noFiles, Merge: o.merge, Progress: &progress})
	stopped()
	if err != nil {
		return err
	}
	if err := writeReport(out, report); err != nil {
		return err
	}
	if !report.Verified() {
		return errDiffers
	}
	return nil
}

// manyTenants is up to how many tenants are all shown.
const manyTenants = 20

// writeReport writes what a migration did. Of many tenants it shows those that
// differ.
func writeReport(out io.Writer, r *migrate.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tcopied\talready there\tsource\ttarget\t")
	for _, row := range []struct {
		name string
		of   func(migrate.Counts) int64
	}{
		{"tenants", func(c migrate.Counts) int64 { return c.Tenants }},
		{"keys", func(c migrate.Counts) int64 { return c.Keys }},
		{"sessions", func(c migrate.Counts) int64 { return c.Sessions }},
		{"exchanges", func(c migrate.Counts) int64 { return c.Exchanges }},
		{"files", func(c migrate.Counts) int64 { return c.Files }},
		{"chunks", func(c migrate.Counts) int64 { return c.Chunks }},
		{"months of usage", func(c migrate.Counts) int64 { return c.Months }},
		{"bytes", func(c migrate.Counts) int64 { return c.Bytes }},
	} {
		copied, there := humanize.Comma(row.of(r.Copied)), humanize.Comma(row.of(r.There))
		if row.name == "tenants" {
			copied, there = "", ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", row.name, copied, there, humanize.Comma(row.of(r.Source)), humanize.Comma(row.of(r.Target)))
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "tenant\tkeys\tsessions\texchanges\tfiles\tchunks\tsha-256 source\ttarget\t")
	for _, t := range r.Tenants {
		if len(r.Tenants) > manyTenants && t.Source == t.Target {
			continue
		}
		s := t.Source
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%x\t%x\t\n", t.Name, s.Keys, s.Sessions, s.Exchanges, s.Files, s.Chunks, s.Digest[:8], t.Target.Digest[:8])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, d := range r.Differences {
		fmt.Fprintln(out, d)
	}
	if more := r.Differing - len(r.Differences); more > 0 {
		fmt.Fprintf(out, "and %d more differences\n", more)
	}
	verdict := "verified: the target matches the source"
	if !r.Verified() {
		verdict = fmt.Sprintf("NOT VERIFIED: %d differences", r.Differing)
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}
