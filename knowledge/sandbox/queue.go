package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// tenantShare is the part of Reader.Waiting that one tenant's files may take, so
// that there is room for the others.
const tenantShare = 2

var (
	// ErrBusy says that as many files wait to be read as there is room for.
	ErrBusy = errors.New("too many files are waiting to be read")
	// ErrTenantBusy is an ErrBusy that says so of the tenant's own files.
	ErrTenantBusy = fmt.Errorf("%w, all of one tenant", ErrBusy)
)

// queue hands the slots out to tenants in turn: the next one goes to the tenant
// that holds the fewest, of these to the one that has waited longest since it gave one back. The
// files of a tenant are read in the order they came.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting int64   // bytes
	lines   []*line // of the tenants that wait or hold a slot, the last one to give one back at the end
}

// line is a tenant's.
type line struct {
	tenant  string
	held    int // slots
	waiting int64
	files   []*ticket
}

// ticket is a file that waits.
type ticket struct {
	size int64
	turn chan struct{} // closed when it has a slot
}

// enter waits for a slot for a file, where no more than most bytes wait with it.
// leave gives it back, unless there is an error: ErrBusy, ErrTenantBusy, or that
// of ctx.
func (q *queue) enter(ctx context.Context, tenant string, size, most int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{size: size, turn: make(chan struct{})}
	if err := q.add(tenant, t, most); err != nil {
		return err
	}
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
	}
	if !q.remove(tenant, t) { // it got its slot meanwhile
		q.leave(tenant)
	}
	return ctx.Err()
}

func (q *queue) add(tenant string, t *ticket, most int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(tenant)
	if q.free == 0 {
		// A file is let in however large it is where none waits before it.
		switch {
		case len(l.files) > 0 && l.waiting+t.size > most/tenantShare:
			return ErrTenantBusy
		case q.waiting > 0 && q.waiting+t.size > most:
			q.forget(l)
			return ErrBusy
		}
	}
	l.files = append(l.files, t)
	l.waiting += t.size
	q.waiting += t.size
	q.serve()
	return nil
}

// leave gives a slot back.
func (q *queue) leave(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(tenant)
	l.held--
	q.free++
	q.lines = slices.DeleteFunc(q.lines, func(other *line) bool { return other == l })
	if l.held > 0 || len(l.files) > 0 {
		q.lines = append(q.lines, l)
	}
	q.serve()
}

// remove takes a file that waits out again. It is false where it waits no longer.
func (q *queue) remove(tenant string, t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(tenant)
	i := slices.Index(l.files, t)
	if i >= 0 {
		q.take(l, i)
	}
	q.forget(l)
	return i >= 0
}

// serve hands out the slots that are free.
func (q *queue) serve() {
	for q.free > 0 {
		next := -1
		for i, l := range q.lines {
			if len(l.files) > 0 && (next < 0 || l.held < q.lines[next].held) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		l := q.lines[next]
		t := q.take(l, 0)
		l.held++
		q.free--
		close(t.turn)
	}
}

// line is a tenant's, a new one where it has none.
func (q *queue) line(tenant string) *line {
	for _, l := range q.lines {
		if l.tenant == tenant {
			return l
		}
	}
	l := &line{tenant: tenant}
	q.lines = append(q.lines, l)
	return l
}

// take takes the file at a place out of a line.
func (q *queue) take(l *line, i int) *ticket {
	t := l.files[i]
	l.files = slices.Delete(l.files, i, i+1)
	l.waiting -= t.size
	q.waiting -= t.size
	return t
}

// forget drops a line in which nothing is left.
func (q *queue) forget(l *line) {
	if l.held == 0 && len(l.files) == 0 {
		q.lines = slices.DeleteFunc(q.lines, func(other *line) bool { return other == l })
	}
}
