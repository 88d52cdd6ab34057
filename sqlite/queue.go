package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// groupCost is how much one transaction takes on, in rows written or so:
	// enough to share the cost of a commit, little enough not to keep those
	// in it waiting.
	groupCost = 512
	// stepTime is how long a step of an upload, an import or a removal takes of
	// the writer: what a save may have to wait for it. It is some times what a
	// commit costs, so that steps aren't mostly commits.
	stepTime = 5 * time.Millisecond
	// starved is how long the next step waits where saves never let up. An upload
	// then goes on with a fifth of the writer.
	starved = 4 * stepTime
	// hangs is how long the writer may take for one transaction before a save
	// whose time is up no longer takes it for busy, and gives up.
	hangs = 2 * time.Second
)

// queue is what waits for the writer. Saves, which somebody waits for who has
// paid for them, go ahead of steps: pieces of what takes long.
type queue struct {
	mu     sync.Mutex
	saves  []*job
	steps  []*job
	closed bool

	stepped time.Time // when the last step ended

	began atomic.Int64  // how many transactions have begun
	wake  chan struct{} // holds one token when there is something to look at
}

// job is something to write. It may be run more than once, each time from the
// start: the one before was undone.
type job struct {
	run  func(*conn) error
	cost int
	step bool

	added    time.Time
	state    atomic.Int32
	err      error
	panicked error
	done     chan struct{}
}

// The states of a job. A waiting one can be given up, a started one can't:
// whoever waits for it learns how it ended.
const (
	waiting = iota
	started
	givenUp
)

// write runs a job in a transaction, and returns when it is committed. It fails
// with ctx's error only where the job wasn't begun. A deadline is for a writer
// that hangs: while it works through what came before, the job keeps its place.
func (w *writer) write(ctx context.Context, cost int, run func(*conn) error) error {
	return w.queue.do(ctx, &job{run: run, cost: cost})
}

// step is write for a piece of something that takes long. It should take no
// longer than stepTime: see conn.spent.
func (w *writer) step(ctx context.Context, run func(*conn) error) error {
	return w.queue.do(ctx, &job{run: run, cost: groupCost, step: true})
}

// add is step for what takes up room that saves may need: there is none for it
// while the file can't be written, or has only the reserve left.
func (w *writer) add(ctx context.Context, run func(*conn) error) error {
	if err := w.disk.state(); err != nil {
		return err
	}
	return w.step(ctx, run)
}

func (q *queue) do(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.added, j.done = time.Now(), make(chan struct{})
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	if j.step {
		q.steps = append(q.steps, j)
	} else {
		q.saves = append(q.saves, j)
	}
	q.mu.Unlock()
	q.nudge()

	select {
	case <-j.done:
	case <-ctx.Done():
		if !j.step && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			q.outlast(j)
		}
		if j.state.CompareAndSwap(waiting, givenUp) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

// outlast waits for a job for as long as the writer gets on.
func (q *queue) outlast(j *job) {
	tick := time.NewTicker(hangs)
	defer tick.Stop()
	for began := q.began.Load(); ; {
		select {
		case <-j.done:
			return
		case <-tick.C:
		}
		now := q.began.Load()
		if now == began {
			return
		}
		began = now
	}
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default: // it has yet to take the last one
	}
}

// close lets nobody in any more. What waits is still written.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.nudge()
}

// take starts the jobs that are next: the saves at the head of the queue that
// make up one group, or one step.
func (q *queue) take() (group []*job, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.saves, q.steps = stillWaiting(q.saves), stillWaiting(q.steps)
	from, most := &q.saves, groupCost
	if len(q.steps) > 0 && (len(q.saves) == 0 || min(time.Since(q.stepped), time.Since(q.steps[0].added)) >= starved) {
		from, most = &q.steps, 1
	}
	cost, n := 0, 0
	for ; n < len(*from) && cost < most; n++ {
		if j := (*from)[n]; j.state.CompareAndSwap(waiting, started) {
			group = append(group, j)
			cost += j.cost
		}
	}
	*from = without(*from, n)
	if len(group) > 0 {
		q.began.Add(1)
	}
	return group, q.closed
}

// did says that what was taken is done.
func (q *queue) did(group []*job) {
	if group[0].step {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.stepped = time.Now()
	}
}

// stillWaiting drops from the head of the queue what was given up.
func stillWaiting(jobs []*job) []*job {
	n := 0
	for n < len(jobs) && jobs[n].state.Load() == givenUp {
		n++
	}
	return without(jobs, n)
}

// without drops the first n jobs: what was taken is done with, and can be freed.
func without(jobs []*job, n int) []*job {
	rest := copy(jobs, jobs[n:])
	clear(jobs[rest:])
	return jobs[:rest]
}

// WriteBacklog is how long the save that has waited longest for the writer has
// waited, and 0 where none waits.
func (s *Store) WriteBacklog() time.Duration {
	q := &s.writer.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.saves {
		if j.state.Load() == waiting {
			return time.Since(j.added)
		}
	}
	return 0
}

// try runs the job. What it panics with belongs to its caller's goroutine, not
// to the writer's.
func (j *job) try(c *conn) (err error) {
	j.panicked = nil
	c.began = time.Now()
	defer func() {
		if v := recover(); v != nil {
			j.panicked = fmt.Errorf("%v\n\n%s", v, debug.Stack())
			err = j.panicked
		}
	}()
	return j.run(c)
}
