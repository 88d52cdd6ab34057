package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// adds are the entries on their way into the file. Those that come while others
// are being written go in together, after them: they share the cost of making them
// durable.
type adds struct {
	mu      sync.Mutex
	waiting []*addition
	writing bool
}

type addition struct {
	name
	now    time.Time
	record []byte
	done   chan error
}

// add writes an entry, and waits until it is on the disk. Its turn to write may be
// cut short by the context, and the writing not: what became of it would be
// unknown.
func (f *file) add(ctx context.Context, n name, now time.Time, record []byte) error {
	a := &addition{n, now, record, make(chan error, 1)}
	f.adds.mu.Lock()
	f.adds.waiting = append(f.adds.waiting, a)
	if !f.adds.writing {
		f.adds.writing = true
		go f.writeAdds()
	}
	f.adds.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
	}
	f.adds.mu.Lock()
	i := slices.Index(f.adds.waiting, a)
	if i >= 0 {
		f.adds.waiting = slices.Delete(f.adds.waiting, i, i+1)
	}
	f.adds.mu.Unlock()
	if i >= 0 {
		return ctx.Err()
	}
	return <-a.done
}

// writeAdds writes entries for as long as some wait.
func (f *file) writeAdds() {
	for {
		f.adds.mu.Lock()
		group := f.adds.waiting
		f.adds.waiting = nil
		f.adds.writing = len(group) > 0
		f.adds.mu.Unlock()
		if len(group) == 0 {
			return
		}
		err := f.writeGroup(group)
		for _, a := range group {
			if err != nil && len(group) > 1 && !isBusy(err) { // the cause may lie in one of them
				a.done <- f.writeGroup([]*addition{a})
				continue
			}
			a.done <- err
		}
	}
}

// probeSize is how many bytes a probe writes and takes away again.
const probeSize = 64 << 10

// Probe reports whether the file can be written, by writing to it. It leaves
// nothing behind.
func (j *Journal) Probe(ctx context.Context) error {
	err := j.file.probe(ctx)
	if err != nil {
		err = fmt.Errorf("journal: %w", err)
	}
	return err
}

func (f *file) probe(ctx context.Context) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no more than an error once it is committed
	var id int64
	err = tx.QueryRow(`INSERT INTO entries (location, slot, tenant, session, added, aside, record) VALUES ('', 0, '', x'', 0, 1, zeroblob(?)) RETURNING id`, probeSize).Scan(&id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM entries WHERE id = ?`, id); err != nil {
		return err
	}
	return tx.Commit()
}

// writeGroup writes entries in one transaction.
func (f *file) writeGroup(group []*addition) error {
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no more than an error once it is committed
	for _, a := range group {
		_, err := tx.Exec(`INSERT INTO entries (location, slot, tenant, session, added, record) VALUES (?, ?, ?, ?, ?, ?)`,
			f.entries, f.slot, a.scope.Tenant, []byte(a.session), a.now.UnixMilli(), a.record)
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}
