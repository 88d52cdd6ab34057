// Package migrate copies one store into another: keys, usage, sessions with
// their exchanges and the vectors of those, files with their originals, chunks
// and vectors, as they are. What lies in neither store's hands is not copied:
// request rates, and what voids the appends of requests that began before a
// session was deleted.
//
// Run reads by the interfaces of package store and by store.Migrator, and writes
// the same way. All that it does can be done again: after an interruption, the
// next Run finds what is there and goes on. In the end it reads both stores once
// more and compares them; see verify.go.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Options adjust a Run.
type Options struct {
	// Workers is how many sessions are under way at once. Default: 8.
	Workers int
	// NoFiles leaves the files out, for a target that can't search.
	NoFiles bool
	// Merge allows the target to hold more than the source.
	Merge bool
	// Progress, where set, tells others how far it is.
	Progress *Progress
}

// Counts are how many there are of each.
type Counts struct {
	Tenants, Keys, Sessions, Exchanges, Files, Chunks int64
	Months                                            int64 // in which tokens were used
	Bytes                                             int64 // of messages and originals
}

func (c *Counts) add(d Counts) {
	c.Tenants += d.Tenants
	c.Keys += d.Keys
	c.Sessions += d.Sessions
	c.Exchanges += d.Exchanges
	c.Files += d.Files
	c.Chunks += d.Chunks
	c.Months += d.Months
	c.Bytes += d.Bytes
}

// Side is what one store holds of a tenant.
type Side struct {
	Counts
	Digest [32]byte // SHA-256, over all content
}

// Tenant compares the two stores. With Options.Merge, what the target holds
// besides doesn't count.
type Tenant struct {
	Name           string
	Source, Target Side
}

// Report is what came of a Run.
type Report struct {
	Copied Counts // by this run
	There  Counts // in the target already
	// Source and Target are the sums over Tenants.
	Source, Target Counts
	Tenants        []Tenant
	// Differences says where the target isn't like the source: the first
	// twenty of Differing.
	Differences []string
	Differing   int
}

// Verified reports whether the two stores hold the same.
func (r *Report) Verified() bool { return r.Differing == 0 }

const maxDifferences = 20

// ErrEmpty says that there is nothing to copy: another store may have been meant.
var ErrEmpty = errors.New("the source is empty; check its name, and its prefix where it is on Redis")

// migrator is one Run.
type migrator struct {
	from, to store.Migrator
	opts     Options
	progress *Progress

	mu     sync.Mutex
	report Report
}

// Run copies all that from holds into to, and compares them. An error means that
// it didn't come to an end; that the two differ is none, and in the Report.
func Run(ctx context.Context, from, to store.Migrator, o Options) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	m := &migrator{from: from, to: to, opts: o, progress: o.Progress}
	m.progress.begin("looking", 0)
	plan, err := m.survey(ctx, from)
	if err != nil {
		return &m.report, fmt.Errorf("look at the source: %w", err)
	}
	if plan.work == 0 && len(plan.keys) == 0 {
		return &m.report, ErrEmpty
	}
	m.progress.begin("copying", plan.work)
	if err := m.copy(ctx, plan); err != nil {
		return &m.report, err
	}
	if err := m.verify(ctx, plan); err != nil {
		return &m.report, err
	}
	return &m.report, nil
}

func (m *migrator) copied(c Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.Copied.add(c)
}

func (m *migrator) there(c Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.There.add(c)
}

func (m *migrator) differ(scope store.Scope, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.Differing++
	if len(m.report.Differences) < maxDifferences {
		m.report.Differences = append(m.report.Differences, fmt.Sprintf("tenant %s: ", scope.Tenant)+fmt.Sprintf(format, args...))
	}
}

// Progress is how far a Run is. It may be read while that goes on.
type Progress struct {
	phase       atomic.Pointer[string]
	done, total atomic.Int64
}

func (p *Progress) begin(phase string, total int64) {
	p.done.Store(0)
	p.total.Store(total)
	p.phase.Store(&phase)
}

func (p *Progress) advance(n int64) { p.done.Add(n) }

// Now returns what is being done, and how much of how much is: messages, files
// and chunks. The total is 0 where it isn't known.
func (p *Progress) Now() (phase string, done, total int64) {
	if s := p.phase.Load(); s != nil {
		phase = *s
	}
	return phase, p.done.Load(), p.total.Load()
}

// plan is what a store holds, without the contents. All of a store's sessions
// are listed in memory, at some 200 bytes each.
type plan struct {
	tenants []tenantPlan
	keys    []store.Key
	work    int64
}

type tenantPlan struct {
	name     string
	usage    []store.Used
	sessions []store.Session // the one updated last comes last
	files    []store.File    // in the order of their creation
}

func (t *tenantPlan) scope() store.Scope { return store.Scope{Tenant: t.name} }

const listPage = 500

func (m *migrator) survey(ctx context.Context, s store.Migrator) (*plan, error) {
	var p plan
	names, err := s.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	if p.keys, err = s.ListKeys(ctx, ""); err != nil {
		return nil, err
	}
	for _, name := range names {
		t := tenantPlan{name: name}
		if t.usage, err = s.ListUsage(ctx, t.scope()); err != nil {
			return nil, err
		}
		if t.sessions, err = sessions(ctx, s, t.scope()); err != nil {
			return nil, err
		}
		if !m.opts.NoFiles {
			if t.files, err = files(ctx, s, t.scope()); err != nil {
				return nil, err
			}
		}
		p.work += int64(len(t.usage))
		for i := range t.sessions {
			p.work += t.sessions[i].Messages
		}
		for i := range t.files {
			p.work += int64(t.files[i].Chunks) + 1
		}
		p.tenants = append(p.tenants, t)
	}
	return &p, nil
}

func sessions(ctx context.Context, s store.Sessions, scope store.Scope) ([]store.Session, error) {
	var all []store.Session
	for after := ""; ; after = all[len(all)-1].ID {
		list, err := s.ListSessions(ctx, scope, after, listPage)
		if err != nil {
			return nil, changed(err)
		}
		all = append(all, list...)
		if len(list) < listPage {
			slices.Reverse(all)
			return all, nil
		}
	}
}

func files(ctx context.Context, s store.Files, scope store.Scope) ([]store.File, error) {
	var all []store.File
	for after := ""; ; after = all[len(all)-1].ID {
		list, err := s.ListFiles(ctx, scope, store.FileQuery{After: after, Limit: listPage})
		if err != nil {
			return nil, changed(err)
		}
		for _, f := range list {
			all = append(all, settled(f))
		}
		if len(list) < listPage {
			return all, nil
		}
	}
}

// changed explains why something isn't there that was.
func changed(err error) error {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDeleted) {
		return fmt.Errorf("the store changes meanwhile; stop the proxies that use it: %w", err)
	}
	return err
}

// interrupted is why an upload failed that nobody goes on with.
const interrupted = "interrupted; upload it again"

// settled returns a file as its store will have it sooner or later: whoever was
// uploading it has been stopped.
func settled(f store.File) store.File {
	if f.Status != store.FileProcessed && f.Status != store.FileError {
		f.Status, f.Reason = store.FileError, interrupted
	}
	if f.Status == store.FileError {
		f.Chunks = 0 // how many there were before it failed
	}
	f.Created = f.Created.UTC().Truncate(time.Second)
	return f
}
