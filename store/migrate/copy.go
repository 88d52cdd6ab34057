package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/backstory-proxy/backstory/store"
)

// chunkPage is how many chunks are carried at once.
const chunkPage = 256

func (m *migrator) copy(ctx context.Context, p *plan) error {
	if err := m.copyKeys(ctx, p.keys); err != nil {
		return fmt.Errorf("copy the keys: %w", err)
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		if err := m.copyUsage(ctx, t); err != nil {
			return fmt.Errorf("copy tenant %s: usage: %w", t.name, err)
		}
		if err := m.copySessions(ctx, t); err != nil {
			return fmt.Errorf("copy tenant %s: %w", t.name, err)
		}
		// One after the other: their order is that of their creation.
		for _, f := range t.files {
			if err := m.copyFile(ctx, t.scope(), f); err != nil {
				return fmt.Errorf("copy tenant %s, file %s: %w", t.name, f.ID, err)
			}
		}
	}
	return nil
}

// copyKeys copies the service keys. One that was revoked in the target stays so.
func (m *migrator) copyKeys(ctx context.Context, keys []store.Key) error {
	for _, k := range keys {
		known, err := m.to.Key(ctx, k.Digest)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil && !known.Revoked.IsZero() && k.Revoked.IsZero() {
			k.Revoked = known.Revoked
		}
		if err == nil && keyDigest(known) == keyDigest(k) {
			m.there(Counts{Keys: 1})
			continue
		}
		if err := m.to.PutKey(ctx, k); err != nil {
			return err
		}
		m.copied(Counts{Keys: 1})
	}
	return nil
}

// copyUsage raises what the target has of the tenant's usage to what the source
// has.
func (m *migrator) copyUsage(ctx context.Context, t *tenantPlan) error {
	known, err := m.to.ListUsage(ctx, t.scope())
	if err != nil {
		return err
	}
	there := make(map[store.Month]int64, len(known))
	for _, u := range known {
		there[u.Month] = u.Tokens
	}
	var list []store.Used
	for _, u := range t.usage {
		if there[u.Month] < u.Tokens {
			list = append(list, u)
		}
	}
	m.progress.advance(int64(len(t.usage)))
	m.there(Counts{Months: int64(len(t.usage) - len(list))})
	if len(list) == 0 {
		return nil
	}
	m.copied(Counts{Months: int64(len(list))})
	return m.to.RestoreUsage(ctx, t.scope(), list)
}

func (m *migrator) copySessions(ctx context.Context, t *tenantPlan) error {
	err := m.each(ctx, len(t.sessions), m.opts.Workers, func(ctx context.Context, i int) error {
		id := t.sessions[i].ID
		if err := m.copySession(ctx, t.scope(), id); err != nil {
			return fmt.Errorf("session %s: %w", quoted(id), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.restoreTimes(ctx, t)
}

// each calls do with the numbers below n, for several at once, until one fails.
func (m *migrator) each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := 0; i < n && working.Err() == nil; i++ {
		group.Go(func() error { return do(working, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (m *migrator) copySession(ctx context.Context, scope store.Scope, session string) error {
	known := make(map[string]int64) // their Seqs in the target, by ID
	err := store.EachExchange(ctx, m.to, scope, session, func(list []store.Exchange) error {
		for i := range list {
			known[list[i].ID] = list[i].Seq
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	var copied, there Counts
	err = store.EachExchange(ctx, m.from, scope, session, func(list []store.Exchange) error {
		var fresh []store.Exchange
		messages := int64(0)
		for i := range list {
			e := &list[i]
			messages += int64(len(e.Messages))
			if known[e.ID] != 0 {
				there.Exchanges++
				there.Bytes += e.Bytes()
				continue
			}
			copied.Exchanges++
			copied.Bytes += e.Bytes()
			fresh = append(fresh, *e)
		}
		defer m.progress.advance(messages)
		if len(fresh) > 0 {
			seqs, err := m.to.Import(ctx, store.Import{Scope: scope, Session: session, Exchanges: fresh})
			if err != nil {
				return err
			}
			for i, seq := range seqs {
				known[fresh[i].ID] = seq
			}
		}
		return m.copyVectors(ctx, scope, session, list, known)
	})
	switch {
	case errors.Is(err, store.ErrDeleted):
		// It may have been deleted for good reason.
		m.differ(scope, "session %s was deleted from the target, and is not brought back", quoted(session))
		return nil
	case err != nil:
		return changed(err)
	}
	if copied.Exchanges > 0 {
		copied.Sessions = 1
	} else {
		there.Sessions = 1
	}
	m.copied(copied)
	m.there(there)
	return nil
}

// restoreTimes sets the times and the order of the sessions, unless they are
// right.
func (m *migrator) restoreTimes(ctx context.Context, t *tenantPlan) error {
	if len(t.sessions) == 0 {
		return nil
	}
	ours := make(map[string]bool, len(t.sessions))
	for _, d := range t.sessions {
		ours[d.ID] = true
	}
	list, err := sessions(ctx, m.to, t.scope())
	if err != nil {
		return err
	}
	right, i := true, 0
	for _, d := range list {
		if !ours[d.ID] || i == len(t.sessions) {
			continue
		}
		want := t.sessions[i]
		right = right && d.ID == want.ID && d.Created.Equal(want.Created) && d.Updated.Equal(want.Updated) && d.TTL == want.TTL
		i++
	}
	if right && i == len(t.sessions) {
		return nil
	}
	return m.to.RestoreSessions(ctx, t.scope(), t.sessions)
}

// copyFile copies a file, unless it is there and processed: what is indexed in
// the target isn't removed, whatever the source says. One that isn't complete is
// begun anew.
func (m *migrator) copyFile(ctx context.Context, scope store.Scope, f store.File) error {
	counts := Counts{Files: 1, Chunks: int64(f.Chunks), Bytes: f.Bytes}
	known, err := m.to.File(ctx, scope, f.ID)
	begun := err == nil
	switch {
	case begun && (known.Status == store.FileProcessed || known.Status == f.Status && known.Reason == f.Reason):
		m.there(counts)
		m.progress.advance(int64(f.Chunks) + 1)
		return nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	}
	err = nil
	if !begun {
		err = m.bring(ctx, scope, f)
		if errors.Is(err, store.ErrExists) {
			return nil // it is told as a difference
		}
	}
	// What is in its way, if an earlier run was broken off, is removed. A
	// sweep of the target may be at that too, and take away what has come since.
	for try := 0; try < bringAgain && (begun || err != nil) && ctx.Err() == nil; try++ {
		if err := m.to.RemoveFile(ctx, scope, f.ID); err != nil {
			return err
		}
		err = m.bring(ctx, scope, f)
		if errors.Is(err, store.ErrExists) {
			return nil
		}
		if err == nil {
			begun, err = m.lacks(ctx, scope, f)
		}
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return changed(err)
	}
	m.copied(counts)
	return nil
}

// bringAgain is how often a file that was begun is begun anew.
const bringAgain = 3

// bring creates a file in the target. ErrExists where it has the same under
// another ID.
func (m *migrator) bring(ctx context.Context, scope store.Scope, f store.File) error {
	content, err := m.from.Content(ctx, scope, f.ID)
	if err != nil {
		return err
	}
	defer content.Close()
	draft := f
	draft.Status, draft.Reason, draft.Chunks = store.FileUploaded, "", 0
	other, err := m.to.CreateFile(ctx, scope, draft, content)
	if errors.Is(err, store.ErrExists) {
		m.differ(scope, "file %s is in the target already, as %s", f.ID, other.ID)
	}
	if err != nil {
		return err
	}
	m.progress.advance(1)
	if f.Status == store.FileProcessed {
		err := chunks(ctx, m.from, scope, f.ID, func(list []store.Chunk) error {
			defer m.progress.advance(int64(len(list)))
			return m.to.AddChunks(ctx, scope, f.ID, list)
		})
		if err != nil {
			return err
		}
	}
	return m.to.FinishFile(ctx, scope, f.ID, f.Status, f.Reason)
}

// lacks reports whether the target doesn't have all chunks of a file.
func (m *migrator) lacks(ctx context.Context, scope store.Scope, f store.File) (bool, error) {
	n := 0
	err := chunks(ctx, m.to, scope, f.ID, func(list []store.Chunk) error {
		n += len(list)
		return nil
	})
	return n != f.Chunks, err
}

// chunks hands a file's chunks to see, in order, page by page.
func chunks(ctx context.Context, s store.Migrator, scope store.Scope, id string, see func([]store.Chunk) error) error {
	for after := -1; ; {
		list, err := s.FileChunks(ctx, scope, id, after, chunkPage)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := see(list); err != nil {
			return err
		}
		after = list[len(list)-1].N
	}
}

// quoted shows a session's name, which may be long and hold anything.
func quoted(name string) string { return fmt.Sprintf("%.64q", name) }
